"use strict";

// The token is in the fragment of the address, which browsers do not send. Remove it from there.
const TOKEN = "edgeveil-token";
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname);
}

const at = (id) => document.getElementById(id);

async function ask(path, body = undefined) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const request = { headers, cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(request, { method: "POST", body: JSON.stringify(body) });
  }
  const answer = await fetch(path, request);
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error), { status: answer.status });
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

let words = FRIENDS;

function showList({ list }) {
  document.title = at("title").textContent = words.title;
  at("common").textContent = words.common;
  at("popular").textContent = words.popular;
  const day = new Date(list.made).toLocaleDateString(undefined, { dateStyle: "long", timeZone: "UTC" });
  at("about").textContent = `For ${list.member}, made on ${day}.`;
  at("remark").textContent = list.remark ? `${list.remark[0].toUpperCase()}${list.remark.slice(1)}.` : "";
  at("people").replaceChildren();
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
    const dismiss = add(row, "button", "dismiss", "Not interested");
    dismiss.type = "button";
    dismiss.setAttribute("aria-label", `Not interested in ${line.node}`);
    dismiss.onclick = () => choose("me/not-interested", { node: line.node }, `${line.node} is off your list. You can undo that below.`);
  }
}

function showChoices({ not_interested, suggest_me }) {
  at("suggest-me").checked = suggest_me;
  at("dismissed").replaceChildren();
  for (const node of not_interested) {
    const row = add(at("dismissed"), "li");
    add(row, "span", "who", String(node));
    const undo = add(row, "button", "", "Undo");
    undo.type = "button";
    undo.setAttribute("aria-label", `Undo: not interested in ${node}`);
    undo.onclick = () => choose("me/interested", { node }, `${node} can be on your list again.`);
  }
  at("not-interested").hidden = !not_interested.length;
  at("choices").hidden = false;
}

// Store a choice, and show the list without whom it hides. An undone one is back within seconds.
async function choose(path, body, done) {
  try {
    showChoices(await ask(path, body));
    at("done").textContent = done;
    at("done").className = "soft";
    showList(await ask("me/suggestions"));
    if (path === "me/interested") setTimeout(async () => showList(await ask("me/suggestions")), 2500);
  } catch (problem) {
    at("done").textContent = `Not done: ${problem.message}.`;
    at("done").className = "alarm";
    showChoices(await ask("me/choices"));
  }
}

at("suggest-me").onchange = ({ target }) =>
  choose(
    "me/suggest-me",
    { suggest_me: target.checked },
    target.checked ? "You may be suggested to others again." : "You are not suggested to others any more.",
  );

async function show() {
  let list;
  try {
    list = await ask("me/suggestions");
  } catch (problem) {
    at("about").textContent = `No list: ${problem.message}.`;
    at("about").className = "alarm";
    if (problem.status === 404) ask("me/choices").then(showChoices, () => {});
    return;
  }
  const asked = [ask("me/protection"), ask("me/budget"), ask("me/choices")];
  const [protection, budget, choices] = await Promise.allSettled(asked);
  if (protection.status === "fulfilled") {
    const { in_short, in_numbers, in_full } = protection.value;
    at("short").textContent = in_short;
    at("odds").textContent = in_numbers;
    at("full").textContent = in_full;
    at("protection").hidden = false;
  }
  words = protection.value?.words ?? FRIENDS;
  showList(list); // below what is said about protection
  if (budget.status === "fulfilled") {
    const { charged, cap, in_words } = budget.value;
    const number = (value) => Number(value.toPrecision(3)).toString();
    at("used").textContent = in_words;
    at("charged").textContent = `Used: ${number(charged)} of ${number(cap)}, measured as epsilon.`;
    at("meter").max = cap;
    at("meter").value = charged;
    at("budget").hidden = false;
  }
  if (choices.status === "fulfilled") showChoices(choices.value);
}

show();
