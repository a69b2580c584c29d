/** One small box of text beside whatever is pointed at or focused. */

import { h } from "./dom";

const box = h("div", { class: "tooltip", role: "status", hidden: true });

export function showTooltip(target: Element, words: string): void {
  if (!box.isConnected) document.body.append(box);
  box.textContent = words;
  box.hidden = false;
  const at = target.getBoundingClientRect();
  const [width, height] = [box.offsetWidth, box.offsetHeight];
  const left = Math.min(Math.max(8, at.left + at.width / 2 - width / 2), innerWidth - width - 8);
  const above = at.top - height - 8;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${(above < 8 ? at.bottom + 8 : above) + scrollY}px`;
}

export function hideTooltip(): void {
  box.hidden = true;
}
