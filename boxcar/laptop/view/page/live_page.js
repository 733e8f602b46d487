"use strict";
// Text goes in as text; what is put in place was made and escaped by Boxcar, and runs nothing.
const body = document.body, gone = document.getElementById("gone");
const about = (s) => s < 60 ? s + "s" : s < 3600 ? Math.floor(s / 60) + "m" :
  s < 86400 ? Math.floor(s / 3600) + "h" + String(Math.floor(s % 3600 / 60)).padStart(2, "0") + "m" :
  Math.floor(s / 86400) + "d" + String(Math.floor(s % 86400 / 3600)).padStart(2, "0") + "h";
const ageS = () => Math.max(0, Math.floor((Date.now() - Date.parse(body.dataset.at)) / 1000));
function tell() {
  const age = document.getElementById("age");
  age.textContent = ageS() < 1 ? body.dataset.now : body.dataset.ago.replace("{}", about(ageS()));
  age.className = ageS() > Number(body.dataset.old) ? "old" : "";
}
function take(text) {
  const there = new DOMParser().parseFromString(text, "text/html");
  const next = there.querySelector("main"), main = document.querySelector("main");
  if (!next || there.body.dataset.at === undefined) throw new Error("another page");
  Object.assign(body.dataset, there.body.dataset);
  document.title = there.title;
  const ids = [...next.children].map((one) => one.id);
  if (ids.join() !== [...main.children].map((one) => one.id).join()) main.replaceWith(next);
  else for (const one of [...next.children]) {
    const old = document.getElementById(one.id);
    if (old.tagName === "DETAILS") one.open = old.open;
    if (old.outerHTML === one.outerHTML) continue;
    const place = [...old.querySelectorAll(".wide")].map((wide) => wide.scrollLeft);
    old.replaceWith(one);
    one.querySelectorAll(".wide").forEach((wide, at) => { wide.scrollLeft = place[at] || 0; });
  }
  tell();
}
async function again() {
  // A selection would be lost, and somebody is about to copy it.
  if (document.hidden || !getSelection().isCollapsed) return;
  if (location.protocol === "file:") { location.reload(); return; }
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    take(await answer.text());
    gone.hidden = true;
  } catch {
    gone.textContent = gone.dataset.said.replace("{}", new Date(body.dataset.at).toLocaleString());
    gone.hidden = false;
  }
}
tell();
setInterval(tell, 1000);
setInterval(again, 1000 * Math.max(1, Number(body.dataset.every)));
