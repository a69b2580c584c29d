"use strict";

// The token is in the fragment of the address, which browsers do not send. Remove it from there.
const TOKEN = "edgeveil-token";
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname);
}

const at = (id) => document.getElementById(id);

async function ask(path) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store" });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function add(parent, kind, name, text) {
  const made = document.createElement(kind);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// How often noise alone produces such a line, in words.
function byChance(chance) {
  if (chance >= 1) return "Noise alone would put as many names here.";
  if (chance < 0.01) return "Fewer than 1 in 100 such names are here by chance.";
  return `About ${Math.round(100 * chance)} in 100 such names are here by chance.`;
}

// The nouns of this graph; without an answer from the service, people and friends.
const FRIENDS = {
  title: "People you may know", common: "friends", yours: "friends", popular: "many people know them",
};

function showList({ list }, words) {
  document.title = at("title").textContent = words.title;
  at("common").textContent = words.common;
  at("popular").textContent = words.popular;
  const day = new Date(list.made).toLocaleDateString(undefined, { dateStyle: "long", timeZone: "UTC" });
  at("about").textContent = `For ${list.member}, made on ${day}.`;
  at("remark").textContent = list.remark ? `${list.remark[0].toUpperCase()}${list.remark.slice(1)}.` : "";
  at("legend").hidden = !list.suggestions.length;
  for (const line of list.suggestions) {
    const row = add(at("people"), "li");
    add(row, "span", "rank", String(line.rank));
    const who = add(row, "span", "who", String(line.node));
    if (line.strength !== "popular") add(who, "span", "why", line.why);
    const strength = add(row, "details", `strength ${line.strength}`);
    add(strength, "summary", "", line.strength);
    const numbers = `Common ${words.common}, estimated: ${line.common}. ${byChance(line.chance)}`;
    const popular = `Suggested because ${words.popular}, not because of your ${words.yours}.`;
    add(strength, "span", "numbers", line.strength === "popular" ? popular : numbers);
  }
}

async function show() {
  let list;
  try {
    list = await ask("me/suggestions");
  } catch (problem) {
    at("about").textContent = `No list: ${problem.message}.`;
    at("about").className = "alarm";
    return;
  }
  const [protection, budget] = await Promise.allSettled([ask("me/protection"), ask("me/budget")]);
  if (protection.status === "fulfilled") {
    const { in_short, in_numbers, in_full } = protection.value;
    at("short").textContent = in_short;
    at("odds").textContent = in_numbers;
    at("full").textContent = in_full;
    at("protection").hidden = false;
  }
  showList(list, protection.value?.words ?? FRIENDS); // below what is said about protection
  if (budget.status === "fulfilled") {
    const { charged, cap, in_words } = budget.value;
    const number = (value) => Number(value.toPrecision(3)).toString();
    at("used").textContent = in_words;
    at("charged").textContent = `Used: ${number(charged)} of ${number(cap)}, measured as epsilon.`;
    at("meter").max = cap;
    at("meter").value = charged;
    at("budget").hidden = false;
  }
}

show();
