/** Builds the page from the data that stands in it. Sections without data are left out. */

import { accuracy } from "./accuracy";
import { type MemberList, type Page, unpack } from "./data";
import { type Child, fresh, h } from "./dom";
import { besideTruth, mayLeave, releasedList } from "./lists";
import { picker } from "./selection";
import { numbers } from "./table";

interface Part {
  id: string;
  title: string;
  content: HTMLElement;
}

const CURATOR = "For the curator only: not private";
const MEASURED = "Measured against the exact graph, so it can tell about its edges. Do not pass it on.";

function build(page: Page): void {
  const list = h("div", { "aria-live": "polite" });
  const truth = h("div");
  const chosen = page.lists.filter((one) => one.epsilon !== null);
  const picked = chosen.length
    ? picker(chosen, (one: MemberList) => {
        list.replaceChildren(...releasedList(one, page.lists));
        truth.replaceChildren(...besideTruth(one, page.lists));
      })
    : null;

  const releasable: Part[] = page.lists.some(mayLeave) ? [{ id: "list", title: "Private lists", content: list }] : [];
  const picture: Part[] = page.results.length
    ? [{ id: "accuracy", title: "What privacy costs", content: accuracy(page.results) }]
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
  if (page.facts.length) {
    const facts = h("dl", { class: "facts" });
    for (const [term, fact] of page.facts) facts.append(h("div", {}, h("dt", {}, term), h("dd", {}, fact)));
    curator.push({ id: "facts", title: "How it was measured", content: facts });
  }

  const main = document.querySelector("main") as HTMLElement;
  document.querySelector("header .lead")?.append(...paragraphs(page.summary).children);
  const passOn = "To pass lists on, write a page without the curator's part.";
  const alone = !picture.length && !curator.length;
  main.append(
    ...[
      picked,
      zone("releasable", "Releasable", `From private values only. ${alone ? "" : passOn}`, releasable),
      zone("curator", CURATOR, MEASURED, picture),
      zone("curator", CURATOR, MEASURED, curator),
    ].filter((child) => child !== null),
  );
  main.classList.toggle("halves", releasable.length > 0 && picture.length > 0);
  themeSwitch();
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
