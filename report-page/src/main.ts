/** Builds the page from the data that stands in it. Sections without data are left out. */

import { accuracy } from "./accuracy";
import { comparison, hasTruth } from "./comparison";
import { type Page, type Ranking, unpack } from "./data";
import { type Child, fresh, h } from "./dom";
import { mayLeave, privateRanking, promises } from "./releasable";
import type { Picker } from "./selection";
import { numbers } from "./table";

interface Part {
  id: string;
  title: string;
  lead?: string;
  content: HTMLElement;
}

function build(page: Page): void {
  const pickers: Picker[] = [];
  const together = (ranking: Ranking): void => pickers.forEach((one) => one.follow(ranking));

  const releasable: Part[] = [];
  if (page.rankings.some(mayLeave)) {
    const { element, picker } = privateRanking(page, together);
    pickers.push(picker);
    releasable.push({ id: "ranking", title: "A private ranking", content: element });
  }
  if (page.guarantees.length) {
    releasable.push({ id: "promises", title: "What is promised", content: promises(page.guarantees) });
  }

  const curator: Part[] = [];
  if (page.results.length) {
    curator.push({
      id: "accuracy",
      title: "How much survives",
      lead: "Accuracy against privacy loss. More to the left is more private.",
      content: accuracy(page.results),
    });
  }
  if (page.notes.length) {
    curator.push({ id: "notes", title: "What the numbers say", content: paragraphs(page.notes) });
  }
  if (page.rankings.some(hasTruth)) {
    const { element, picker } = comparison(page, together);
    pickers.push(picker);
    curator.push({ id: "truth", title: "Private beside true", content: element });
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
  if (releasable.length) {
    main.append(
      zone("releasable", "Releasable", [
        "Made from private values only. Each ranking is for the readers that its promise names.",
        curator.length
          ? " This file also holds the curator's part: to pass rankings on, write a page without it."
          : "",
      ].join(""), releasable),
    );
  }
  if (curator.length) {
    main.append(
      zone(
        "curator",
        "For the curator only: not private",
        "Everything here is measured against the exact graph, so it can tell about its edges. Do not pass it on.",
        curator,
      ),
    );
  }
  contents([...releasable, ...curator]);
  themeSwitch();
}

function zone(kind: string, title: string, lead: string, parts: Part[]): HTMLElement {
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
        part.lead ? h("p", { class: "quiet" }, part.lead) : null,
        part.content,
      ),
    ),
  );
}

function paragraphs(texts: string[]): HTMLElement {
  return h("div", { class: "prose" }, ...texts.map((text): Child => h("p", {}, text)));
}

function contents(parts: Part[]): void {
  const nav = document.querySelector("nav") as HTMLElement;
  nav.hidden = parts.length < 2;
  nav.append(...parts.map((part) => h("a", { href: `#${part.id}` }, part.title)));
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
