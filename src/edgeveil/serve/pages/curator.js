"use strict";

// The key is in the fragment of the address, which browsers do not send. Remove it from there.
const KEY = "edgeveil-key";
const given = new URLSearchParams(location.hash.slice(1)).get("key");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname);
}

const at = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

async function ask(path, method = "GET", body = undefined) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` };
  const answer = await fetch(path, { method, headers, body, cache: "no-store" });
  const json = answer.headers.get("content-type").startsWith("application/json");
  const found = json ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Error(found.error ?? answer.status);
  return found;
}

function shape(parent, kind, values, text) {
  const made = document.createElementNS(SVG, kind);
  for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function table(place, heads, rows) {
  const line = (kind, cells) => {
    const made = document.createElement("tr");
    for (const cell of cells) {
      const one = document.createElement(kind);
      one.textContent = String(cell);
      if (typeof cell === "number" || (kind === "th" && typeof rows[0]?.[made.children.length] === "number")) {
        one.className = "number";
      }
      made.append(one);
    }
    return made;
  };
  place.replaceChildren(line("th", heads), ...rows.map((row) => line("td", row)));
}

function chart(place, points, across, up) {
  // As wide as its container, so that the text is not scaled on a phone.
  const [wide, high, left, low] = [Math.max(place.clientWidth, 240), 200, 48, 24];
  const drawn = document.createElementNS(SVG, "svg");
  drawn.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", `${up} against ${across.name}`);
  place.replaceChildren(drawn);
  if (!points.length) {
    shape(drawn, "text", { x: left, y: high / 2 }, "nothing yet");
    return;
  }
  const [x0, x1] = [points[0][0], points.at(-1)[0]];
  const most = Math.max(...points.map((p) => p[1]), 1e-9);
  const x = (v) => left + ((v - x0) / (x1 - x0 || 1)) * (wide - left - 12);
  const y = (v) => high - low - (v / most) * (high - low - 16);
  for (const share of most < 2 ? [0, 1] : [0, 0.5, 1]) {
    shape(drawn, "line", { class: "axis", x1: left, x2: wide - 12, y1: y(share * most), y2: y(share * most) });
    const value = Number((share * most).toPrecision(3)).toLocaleString();
    shape(drawn, "text", { x: left - 6, y: y(share * most) + 4, "text-anchor": "end" }, value);
  }
  shape(drawn, "polyline", { class: "line", points: points.map((p) => `${x(p[0])},${y(p[1])}`).join(" ") });
  for (const p of points.length < 60 ? points : []) {
    shape(drawn, "circle", { class: "dot", cx: x(p[0]), cy: y(p[1]), r: 3 });
  }
  for (const value of across.ticks ?? (x1 > x0 ? [x0, x1] : [x0])) {
    const anchor = value === x0 ? "start" : value === x1 ? "end" : "middle";
    shape(drawn, "text", { x: x(value), y: high - 6, "text-anchor": anchor }, across.show(value));
  }
}

function facts(status) {
  const known = (value) => (value === null ? "none can be shown" : value.toLocaleString());
  const said = {
    "graph": status.label || "(no label)",
    "snapshot": known(status.snapshot),
    "members": known(status.members),
    "length of a list": status.k,
    "price of the series": `epsilon ${status.epsilon}`,
    "cap for each member": status.cap,
    "lowest remaining budget": status.least_left,
    "lists still to be copied": status.copies_left.toLocaleString(),
    "refresh": working(status.refresh),
  };
  at("facts").replaceChildren(
    ...Object.entries(said).flatMap(([name, value]) => {
      const [term, words] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      words.textContent = String(value);
      return [term, words];
    }),
  );
  at("last_error").textContent = [status.last_error, status.error_of_keys].filter(Boolean).join("; ");
}

function working({ running, done, members, words }) {
  if (running) return `running: ${done.toLocaleString()} of ${members.toLocaleString()} members`;
  return words || "none since the service was started";
}

function counts(text) {
  const requests = [];
  const buckets = new Map();
  for (const line of text.split("\n")) {
    let found = /^edgeveil_requests_total\{route="([^"]*)",status="(\d+)"\} (\S+)/.exec(line);
    if (found) requests.push([found[1], found[2], Number(found[3])]);
    found = /^edgeveil_request_seconds_bucket\{le="([^"]*)",route="\/me\/suggestions"\} (\S+)/.exec(line);
    if (found && found[1] !== "+Inf") buckets.set(Number(found[1]) * 1000, Number(found[2]));
  }
  table(at("requests"), ["path", "status", "number"], requests);
  const total = Math.max(...buckets.values(), 1);
  const points = [...buckets].map(([limit, number]) => [Math.log10(limit), (100 * number) / total]);
  const across = { name: "time", ticks: [0, 1, 2, 3, 4], show: (v) => (v < 3 ? `${Math.round(10 ** v)} ms` : `${10 ** v / 1000} s`) };
  chart(at("latency"), buckets.size ? points : [], across, "Share of answers within this time, in percent");
}

function charges({ series, windows }) {
  const day = (time) => new Date(time).toLocaleDateString();
  table(at("series"), ["since", "members", "charged to each (epsilon)"], series.map((one) => [day(one.since), one.members, one.epsilon]));
  table(at("windows"), ["snapshot", "day", "windows"], windows.map((one) => [one.snapshot, day(one.time), one.windows]));
}

function renewals(rows) {
  table(at("renewals"), ["renewals", "epsilon of each"], rows.map((one) => [one.renewals, Number(one.epsilon.toPrecision(3))]));
}

async function show() {
  try {
    facts(await ask("status"));
    const [listed, metrics, plan] = await Promise.all([ask("charges"), ask("metrics"), ask("plan")]);
    charges(listed);
    counts(metrics);
    renewals(plan);
    at("about").textContent = `As of ${new Date().toLocaleTimeString()}.`;
    at("about").className = "soft";
  } catch (problem) {
    at("about").textContent = `No answer: ${problem.message}.`;
    at("about").className = "alarm";
  }
}

function priceOfRefresh(price) {
  const number = (count, one, many) => `${count.toLocaleString()} ${count === 1 ? one : many}`;
  const charged = price.n_newcomers
    ? `Charges epsilon ${price.epsilon} to ${number(price.n_newcomers, "newcomer", "newcomers")}, once for all their lists to come; nothing for everybody else.`
    : "Charges nobody: there are no newcomers.";
  const left_out = number(price.n_left_out, "member has", "members have");
  return [
    `${charged} Members in all: ${price.n_members.toLocaleString()}. Lowest remaining budget: ${price.least_left}.`,
    price.n_left_out ? `${left_out} too little budget left, and will get no list.` : "",
  ];
}

// Shows the price of a refresh, and sends it back if the curator confirms it.
at("refresh").addEventListener("click", async () => {
  try {
    const price = await ask("refresh");
    [at("question").textContent, at("left-out").textContent] = priceOfRefresh(price);
    at("charge").onclick = async () => {
      at("confirm").close();
      try {
        await ask("refresh", "POST", JSON.stringify(price));
        at("done").textContent = "The refresh has begun.";
      } catch (problem) {
        at("done").textContent = problem.message;
      }
      show();
    };
    at("confirm").showModal();
  } catch (problem) {
    at("done").textContent = problem.message;
  }
});
at("cancel").addEventListener("click", () => at("confirm").close());
show();
setInterval(show, 5000);
