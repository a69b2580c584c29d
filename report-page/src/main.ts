/** Builds the page from the data that stands in it. Sections without data are left out. */

import { accuracy } from "./accuracy";
import { distinct, type MemberList, type Page, plain, type Predictions, unpack } from "./data";
import { type Child, fresh, h, name } from "./dom";
import { besideTruth, lossOf, mayLeave, releasedList } from "./lists";
import { type Part, predictionParts } from "./predictions";
import { picker, samePlace } from "./selection";
import { charges } from "./charges";
import { numbers } from "./table";

const CURATOR = "For the curator only: not private";
const MEASURED = "Measured against the exact graph, so it can tell about its edges. Do not pass it on.";
const KEPT = "For its keeper: it tells who was given what, and when. Nothing here depends on a connection.";

function build(page: Page): void {
  const list = h("div", { "aria-live": "polite" });
  const truth = h("div");
  const chosen = page.lists.filter((one) => one.epsilon !== null || !one.truth);
  const measured = page.results.length > 0 || page.lists.some((one) => one.truth);
  const several = distinct(chosen, (one) => one.epsilon).length > 1;
  const more = also(chosen, measured, page.charges !== null);
  const chart = page.results.length ? accuracy(page.results) : null;
  let shown: MemberList | null = null;
  const released = zone("releasable", "", "", chosen.length ? [{ id: "list", title: "", content: list }] : []);
  const picked = chosen.length
    ? picker(chosen, (one: MemberList) => {
        list.replaceChildren(...releasedList(one, page.lists, chart === null));
        truth.replaceChildren(...besideTruth(one, page.lists));
        // The chart follows from member to member, and not while one is looked at.
        if (one.group && !(shown && samePlace(one, shown))) chart?.open(one.group);
        shown = one;
        if (released) headed(released, one, more, several);
      })
    : null;

  const picture: Part[] = chart
    ? [{ id: "accuracy", title: "What privacy costs", content: chart.element }]
    : [];
  const curator: Part[] = [];
  if (chosen.some((one) => one.truth)) {
    curator.push({ id: "truth", title: "Beside the truth", content: truth });
  }
  if (page.notes.length) {
    curator.push({ id: "notes", title: "What the numbers say", content: paragraphs(page.notes) });
  }
  if (page.results.length) {
    curator.push({ id: "numbers", title: "All numbers", content: numbers(page.results) });
  }
  const charged: Part[] = page.charges
    ? [{ id: "charges", title: "What was given out", content: charges(page.charges) }]
    : [];

  const main = document.querySelector("main") as HTMLElement;
  document.querySelector("header .lead")?.append(...paragraphs(page.summary).children);
  main.append(
    ...[
      page.predictions && predicted(page.predictions, measured || page.charges !== null),
      picked,
      released,
      zone("curator", CURATOR, MEASURED, picture),
      zone("curator", CURATOR, MEASURED, curator),
      zone("keeper", `Ledger ${page.charges?.ledger}`, KEPT, charged),
    ].filter((child) => child !== null),
  );
  main.classList.toggle("halves", chosen.length > 0 && picture.length > 0);
  themeSwitch();
}

/** Predictions are for anyone, unless their noise was seeded or something else is in the file. */
function predicted(made: Predictions, more: boolean): HTMLElement | null {
  const words = "Made from noisy values, and from labels and features, which are not protected.";
  const other = more ? " But this file holds other parts, too: do not pass it on." : "";
  return made.private
    ? zone("releasable", `Predicted classes, for anyone${made.epsilon === null ? "" : `: ε = ${plain(made.epsilon)}`}`, words + other, predictionParts(made))
    : zone("curator", "Not private: do not pass it on", "No secret noise protects these predictions.", predictionParts(made));
}

/** What else is in the file, so that whoever may have one list may not have the file. */
function also(chosen: MemberList[], measured: boolean, kept: boolean): string {
  const members = distinct(chosen.filter((one) => one.alone), (one) => one.member).length;
  const parts = [
    members > 1 && `lists of ${members} members`,
    measured && "the curator's part",
    kept && "what the ledger has given out",
  ].filter(Boolean);
  return parts.length ? ` But this file also holds ${parts.join(" and ")}: do not pass it on.` : "";
}

/** Say for whom the list is that is shown. */
function headed(released: HTMLElement, list: MemberList, more: string, several: boolean): void {
  const leaves = mayLeave(list);
  released.className = `zone ${leaves ? "releasable" : "curator"}`;
  const whom = list.alone ? ["For ", name(list.member), " alone"] : [name(list.member), ", for anyone"];
  released.querySelector("h2")?.replaceChildren(...(leaves ? whom : ["Not private: do not pass it on"]));
  (released.querySelector("h3") as HTMLElement).textContent = `${leaves ? "Private list" : "List"}${several ? `, ${lossOf(list)}` : ""}`;
  const from = list.alone ? "noisy values and the member's own connections" : "noisy values only";
  const lead = leaves ? `Made from ${from}.${more}` : "No secret noise protects this list.";
  (released.querySelector(".zone-head p") as HTMLElement).textContent = lead;
}

function zone(kind: string, title: string, lead: string, parts: Part[]): HTMLElement | null {
  if (!parts.length) return null;
  const id = fresh("zone");
  return h(
    "section",
    { class: `zone ${kind}`, "aria-labelledby": id },
    h("div", { class: "zone-head" }, h("h2", { id }, title), h("p", {}, lead)),
    ...parts.map((part) =>
      h(
        "section",
        { id: part.id, class: "part", "aria-labelledby": `${part.id}-title` },
        h("h3", { id: `${part.id}-title` }, part.title),
        part.content,
      ),
    ),
  );
}

function paragraphs(texts: string[]): HTMLElement {
  return h("div", { class: "prose" }, ...texts.map((text): Child => h("p", {}, text)));
}

function themeSwitch(): void {
  const button = document.querySelector<HTMLButtonElement>("#theme") as HTMLButtonElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const dark = (): boolean => (root.dataset["theme"] ?? (system.matches ? "dark" : "light")) === "dark";
  const say = (): void => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Switch to light colours" : "Switch to dark colours");
  };
  button.addEventListener("click", () => {
    root.dataset["theme"] = dark() ? "light" : "dark";
    say();
  });
  system.addEventListener("change", say);
  button.hidden = false;
  say();
}

build(unpack(document.querySelector("#data")?.textContent ?? ""));
