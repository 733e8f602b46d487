"use strict";
// A click on a head, or Enter, sorts its table by this column; without scripts a head is just text.
for (const { tBodies: [body], tHead } of document.querySelectorAll("table")) {
  const heads = [...tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const isUp = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : !("down" in head.dataset);
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      const text = (row) => row.cells[at].textContent.replace(/^[★ (]+/, "");
      const order = (a, b) => {
        const [x, y] = [text(a), text(b)], [n, m] = [parseFloat(x), parseFloat(y)];
        if (x === "-" || y === "-") return (x === "-") - (y === "-");
        const found = isNaN(n) || isNaN(m) ? x.localeCompare(y, undefined, { numeric: true }) : n - m;
        return isUp ? found : -found;
      };
      body.append(...[...body.rows].sort(order));
    };
  });
}
