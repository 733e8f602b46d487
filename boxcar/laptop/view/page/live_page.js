"use strict";
// Text goes in as text; what is put in place was made and escaped by Boxcar, and runs nothing.
const body = document.body, gone = document.querySelector(".gone"), isServed = Boolean(body.dataset.number);
const one = (what) => document.querySelector(what), all = (what) => [...document.querySelectorAll(what)];
const about = (s) => s < 60 ? s + "s" : s < 3600 ? Math.floor(s / 60) + "m" :
  s < 86400 ? Math.floor(s / 3600) + "h" + String(Math.floor(s % 3600 / 60)).padStart(2, "0") + "m" :
  Math.floor(s / 86400) + "d" + String(Math.floor(s % 86400 / 3600)).padStart(2, "0") + "h";
const ageS = () => Math.max(0, Math.floor((Date.now() - Date.parse(body.dataset.at)) / 1000));
function tell() {
  const age = one(".age");
  age.textContent = ageS() < 1 ? body.dataset.now : body.dataset.ago.replace("{}", about(ageS()));
  age.className = ageS() > Number(body.dataset.old) ? "age old" : "age";
}

// What is new: a whole page, or what changed since the one that is here.
function made(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content.firstElementChild;
}
function take(text) {
  const there = new DOMParser().parseFromString(text, "text/html");
  const next = there.querySelector("main"), main = one("main");
  if (!next || there.body.dataset.at === undefined) throw new Error("another page");
  Object.assign(body.dataset, there.body.dataset);
  document.title = there.title;
  for (const kept of [".tools", ".opened"]) if (one(kept)) next.querySelector(kept)?.replaceWith(one(kept));
  next.querySelectorAll("details").forEach((part) => { part.open = Boolean(one(`details[data-id=${part.dataset.id}]`)?.open); });
  const places = all("main > :not(.opened) .wide").map((wide) => [wide.getAttribute("aria-label"), wide.scrollLeft]);
  main.replaceWith(next);
  for (const [label, left] of places) all(".wide").filter((wide) => wide.getAttribute("aria-label") === label).forEach((wide) => { wide.scrollLeft = left; });
  all("body > template").forEach((told) => told.remove());
  body.append(...there.querySelectorAll("body > template"));
}
function merge(news) {
  const at = (id) => document.getElementById(id);
  Object.assign(body.dataset, { at: news.at, number: news.number });
  for (const id of news.gone) at(id)?.remove();
  for (const [id, html] of Object.entries(news.parts)) {
    const next = made(html), old = at(id), place = id.slice(0, id.indexOf(":"));
    next.querySelectorAll("path").forEach((path) => path.setAttribute("d", at(path.id)?.getAttribute("d") ?? ""));
    if (old) old.replaceWith(next);
    else one(place === "chart" ? ".charts" : `[data-id=${place}] tbody`).append(next);
  }
  for (const [id, before] of Object.entries(news.after)) {
    const part = at(id), ahead = at(before);
    if (ahead?.parentElement === part.parentElement) ahead.after(part);
    else part.parentElement.prepend(part);
  }
  for (const [id, [kept, tail]] of Object.entries(news.curves)) at(id)?.setAttribute("d", at(id).getAttribute("d").slice(0, kept) + tail);
}

// The tables: sorted by a column, and the rows that have all words of the filter.
const sorts = {}, names = new Intl.Collator(undefined, { numeric: true });
const SPENT = /(?:^|\s)(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:\s|$)/, NUMBER = /^(?:\S+ )?~?(-?\d[\d,.]*(?:e[+-]?\d+)?|nan|-?inf)(k?)/;
function worth(text) {
  const [, d, h, m, s] = SPENT.exec(text) ?? [];
  if (d || h || m || s) return ((+(d ?? 0) * 24 + +(h ?? 0)) * 60 + +(m ?? 0)) * 60 + +(s ?? 0);
  const [, number, k] = NUMBER.exec(text) ?? [];
  return parseFloat((number ?? "").replaceAll(",", "")) * (k ? 1000 : 1);
}
function sort(section) {
  const [title, sign] = sorts[section.dataset.id] ?? [], heads = [...section.querySelectorAll("thead th")];
  const at = heads.findIndex((head) => head.textContent === title);
  heads.forEach((head, n) => n === at ? head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending") : head.removeAttribute("aria-sort"));
  if (at < 0) return;
  const table = section.querySelector("tbody"), rows = [...table.rows].map((row) => [row.cells[at].textContent.trim(), row]);
  const isNumber = rows.every(([text]) => !text || NUMBER.test(text));
  const isNone = (text) => isNumber ? Number.isNaN(worth(text)) : !text;
  rows.sort(([a], [b]) => isNone(a) - isNone(b) || (isNone(a) ? 0 : sign * (isNumber ? worth(a) - worth(b) : names.compare(a, b))));
  table.append(...rows.map(([, row]) => row));
}
function filter() {
  const words = (one(".tools input")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of all("[data-id=needs] tbody tr, [data-id=running] tbody tr, [data-id=cells] tbody tr")) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  if (!one(".tools")) return;
  const rows = all("[data-id=cells] tbody tr"), shown = rows.filter((row) => !row.hidden).length;
  one(".tools output").textContent = words.length ? body.dataset.found.replace("{n}", shown).replace("{all}", rows.length) : "";
}
function dress() {
  if (one(".tools")) one(".tools").hidden = false;
  for (const head of all("thead th")) if (!head.firstElementChild) {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
  }
  all(".section").forEach(sort);
  filter();
  choose();
  all("figure").forEach(zoom);
  tell();
}

// Cells that are opened: beside each other, and in front of the others in the charts.
const MOST_OPENED = 4, opened = () => all(".opened article");
function choose() {
  const cells = opened().map((article) => article.dataset.cell);
  all(".curves path").forEach((path) => path.classList.toggle("chosen", cells.includes(path.dataset.cell)));
  all("figure").forEach((figure) => figure.classList.toggle("some", Boolean(figure.querySelector(".chosen"))));
}
async function read(cell) {
  const told = all("body > template").find((kept) => kept.dataset.cell === cell);
  if (told) return told.innerHTML;
  if (!isServed) throw new Error("not in this file");
  const answer = await fetch("?cell=" + encodeURIComponent(cell), { cache: "no-store" });
  if (!answer.ok) throw new Error(answer.status);
  return answer.text();
}
async function show(article) {
  const next = made(await read(article.dataset.cell)), close = document.createElement("button");
  if (!article.isConnected) return;
  const logs = [article.querySelector("pre"), next.querySelector("pre")], isHere = article.contains(document.activeElement);
  const fromEnd = logs[0] ? logs[0].scrollHeight - logs[0].scrollTop : 0;
  close.className = "close";
  close.textContent = body.dataset.close;
  next.append(close);
  article.replaceWith(next);
  if (logs[1]) logs[1].scrollTop = logs[1].scrollHeight - Math.max(fromEnd, logs[1].clientHeight);
  if (isHere) close.focus();
  choose();
}
function open(cell) {
  const there = opened().find((article) => article.dataset.cell === cell), article = there ?? document.createElement("article");
  if (!there) {
    article.dataset.cell = cell;
    article.textContent = body.dataset.loading;
    one(".opened").append(article);
    if (opened().length > MOST_OPENED) opened()[0].remove();
    show(article).then(() => opened().find((now) => now.dataset.cell === cell)?.querySelector(".close").focus({ preventScroll: true }), () => article.remove());
  }
  article.scrollIntoView({ block: "nearest" });
}
function close(article) {
  article.remove();
  choose();
  all("button[data-cell]").find((button) => button.dataset.cell === article.dataset.cell && button.offsetParent)?.focus();
}

// A part of a chart, larger: what was dragged over, or the end of all curves. Its numbers stand above it.
const zooms = {}, ENDS = [0, 0.5, 0.75];
let end = 0;
const points = (figure) => [...figure.querySelectorAll(".curves path")].flatMap((path) => path.getAttribute("d").split("M").flatMap((part) => {
  const numbers = part.split(" ").map(Number);
  return numbers.flatMap((x, n) => n % 2 || n + 1 === numbers.length ? [] : [[x, numbers[n + 1]]]);
}));
function range(figure) {
  if (zooms[figure.id] || !ENDS[end]) return zooms[figure.id];
  const xs = points(figure).map(([x]) => x), last = xs.reduce((a, b) => Math.max(a, b)), first = xs.reduce((a, b) => Math.min(a, b));
  return [first + (last - first) * ENDS[end], last];
}
function zoom(figure) {
  const line = figure.querySelector(".curves"), said = figure.querySelector(".range");
  if (!line) return;
  line.dataset.whole ??= line.getAttribute("transform");
  const [left, right] = range(figure) ?? [], ys = points(figure).filter(([x]) => x >= left && x <= right).map(([, y]) => y);
  figure.classList.toggle("zoomed", ys.length > 0 && right > left);
  said.textContent = "";
  if (!figure.classList.contains("zoomed")) { line.setAttribute("transform", line.dataset.whole); return; }
  const low = ys.reduce((a, b) => Math.min(a, b)), high = ys.reduce((a, b) => Math.max(a, b)), room = (high - low) * 0.06 || Math.abs(high) * 0.06 || 1;
  const wide = 100 / (right - left), tall = 100 / (low - high - 2 * room), four = (number) => +number.toPrecision(4);
  line.setAttribute("transform", `matrix(${wide} 0 0 ${tall} ${-left * wide} ${-(high + room) * tall})`);
  said.textContent = `${four(left)} … ${four(right)}: ${four(low)} … ${four(high)}`;
}
let dragged = null;
addEventListener("pointerdown", ({ target, clientX }) => { dragged = target.closest?.(".plot > div") && { figure: target.closest("figure"), from: clientX }; });
addEventListener("pointerup", ({ clientX }) => {
  const { figure, from } = dragged ?? {}, line = figure?.querySelector(".curves");
  dragged = null;
  if (!line || Math.abs(clientX - from) < 10) return;
  const at = line.getScreenCTM();
  zooms[figure.id] = [from, clientX].map((x) => (x - at.e) / at.a).sort((a, b) => a - b);
  zoom(figure);
});
addEventListener("dblclick", ({ target }) => {
  const figure = target.closest?.(".plot") && target.closest("figure");
  if (!figure) return;
  delete zooms[figure.id];
  zoom(figure);
});

// What a person does.
function move(by) {
  const buttons = all("tbody button[data-cell]").filter((button) => button.checkVisibility());
  const at = buttons.indexOf(document.activeElement);
  buttons[at < 0 ? 0 : Math.min(buttons.length - 1, Math.max(0, at + by))]?.focus();
}
addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button?.dataset.cell) open(button.dataset.cell);
  else if (button?.className === "close") close(button.closest("article"));
  else if (button) {
    const section = button.closest(".section"), title = button.textContent, [was, sign] = sorts[section.dataset.id] ?? [];
    sorts[section.dataset.id] = [title, was === title ? -sign : 1];
    sort(section);
  }
});
addEventListener("input", () => {
  const cells = one("details[data-id=cells]");
  if (cells && one(".tools input").value) cells.open = true;
  filter();
});
addEventListener("keydown", (event) => {
  const box = one(".tools input"), isTyping = event.target === box, step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey || !box) return;
  if (event.key === "Escape" && isTyping) { box.value = ""; filter(); box.blur(); }
  else if (event.key === "Escape" && opened().length) close(opened().at(-1));
  else if (event.key === "/" && !isTyping) box.focus();
  else if (event.key === "z" && !isTyping) {
    end = (end + 1) % ENDS.length;
    for (const id of Object.keys(zooms)) delete zooms[id];
    all("figure").forEach(zoom);
  }
  else if (step && (isTyping ? event.key.length > 1 : event.key.length === 1 || event.target.dataset?.cell)) move(isTyping ? 0 : step);
  else return;
  event.preventDefault();
});
addEventListener("pointermove", ({ target, clientX, clientY }) => {
  all(".told").forEach((told) => { told.textContent = ""; });
  const plot = target.closest?.(".plot"), line = plot?.querySelector(".curves"), told = plot?.querySelector(".told");
  if (!line) return;
  const from = line.getScreenCTM();
  let best = 30;
  for (const path of line.children) for (const part of path.getAttribute("d").split("M")) {
    const numbers = part.split(" ").map(Number);
    for (let n = 0; n + 1 < numbers.length; n += 2) {
      const far = Math.hypot(from.a * numbers[n] + from.e - clientX, from.d * numbers[n + 1] + from.f - clientY);
      if (far >= best) continue;
      best = far;
      told.textContent = `${path.dataset.cell}  ${+numbers[n + 1].toPrecision(4)} @ ${+numbers[n].toPrecision(4)}`;
    }
  }
});

async function again() {
  // A selection would be lost, and somebody is about to copy it.
  if (document.hidden || !getSelection().isCollapsed) return;
  if (location.protocol === "file:") { location.reload(); return; }
  const focused = document.activeElement.closest("tr")?.id;
  try {
    const answer = await fetch(isServed ? "?since=" + body.dataset.number : location.href, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const text = await answer.text();
    if (text[0] === "{") merge(JSON.parse(text));
    else take(text);
    dress();
    if (focused && document.activeElement === body) document.getElementById(focused)?.querySelector("button")?.focus({ preventScroll: true });
    opened().filter((article) => !article.dataset.over).forEach((article) => show(article).catch(() => {}));
    gone.hidden = true;
  } catch {
    gone.textContent = gone.dataset.said.replace("{}", new Date(body.dataset.at).toLocaleString());
    gone.hidden = false;
  }
  tell();
}
dress();
setInterval(tell, 1000);
setInterval(again, 1000 * Math.max(1, Number(body.dataset.every)));
