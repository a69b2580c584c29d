"use strict";

// The token comes in the part of the address that browsers do not send, and is removed from it.
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

// Places from 1 to `worst` on a logarithmic axis: what matters is at its left.
function bar(line, worst) {
  const shape = (kind, values) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    return made;
  };
  const x = (place) => 100 * Math.log(place) / Math.log(worst + 1);
  const drawn = shape("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" });
  drawn.setAttribute("aria-hidden", "true");
  drawn.append(
    shape("rect", { class: "track", x: 0, y: 4, width: 100, height: 2 }),
    shape("rect", { class: "span", x: x(line.first), y: 1, width: x(line.last + 1) - x(line.first), height: 8 }),
    shape("rect", { class: "dot", x: x(line.place), y: 0, width: 1.5, height: 10 }),
  );
  return drawn;
}

function showList(answer) {
  const list = answer.list;
  const day = new Date(list.made).toLocaleDateString(undefined, { dateStyle: "long", timeZone: "UTC" });
  const old = answer.current ? "" : " It is an earlier one: your privacy budget is used up, so no new list is made.";
  at("about").textContent = `For ${list.member}, made on ${day}.${old}`;
  at("remark").textContent = list.remark ? `${list.remark[0].toUpperCase()}${list.remark.slice(1)}.` : "";
  const worst = Math.max(...list.suggestions.map((line) => line.last), 1);
  for (const line of list.suggestions) {
    const row = add(at("people"), "li");
    add(row, "span", "place", String(line.place));
    add(add(row, "span", "who", String(line.node)), "span", "why", line.why);
    const range = add(row, "span", "range");
    range.append(bar(line, worst));
    const words = line.first === line.last ? `place ${line.first}` : `could be place ${line.first} to ${line.last.toLocaleString()}`;
    add(range, "span", "open", words);
  }
  if (!list.suggestions.length) at("remark").textContent = "There is nobody to suggest.";
}

async function show() {
  try {
    showList(await ask("me/suggestions"));
  } catch (problem) {
    at("about").textContent = `No list: ${problem.message}.`;
    at("about").className = "alarm";
    return;
  }
  const [protection, spending] = await Promise.allSettled([ask("me/protection"), ask("me/spending")]);
  if (protection.status === "fulfilled") {
    at("short").textContent = protection.value.in_short;
    at("full").textContent = protection.value.in_full;
    at("protection").hidden = false;
  }
  if (spending.status === "fulfilled") {
    const { spent, whole } = spending.value;
    const number = (value) => Number(value.toPrecision(3)).toString();
    at("spent").textContent =
      `Each list tells a little about others. Of ${number(whole)} that you may ever learn ` +
      `(epsilon), ${number(spent)} is used up. Looking at a list again costs nothing.`;
    at("meter").max = whole;
    at("meter").value = spent;
    at("spending").hidden = false;
  }
}

show();
