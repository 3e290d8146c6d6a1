// Elements, in one line each.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

export const bold = (text) => h("b", {}, text);
// Lines of a tooltip; a line is a text, an element, or several of them.
export const lines = (...each) => each.filter(Boolean).flatMap((line, i) => (i === 0 ? [line] : [h("br"), line])).flat();

let ids = 0;
export const freshId = (prefix) => `${prefix}-${++ids}`;

// A labelled choice; calls `changed` with the chosen value.
export function choice(label, options, chosen, changed) {
  const id = freshId("choice");
  const select = h(
    "select",
    { id, onchange: () => changed(select.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
  return h("span", { class: "choice" }, h("label", { for: id }, label), select);
}

export function button(text, action, attributes = {}) {
  return h("button", { type: "button", onclick: action, ...attributes }, text);
}

// A section of the page, reached from the navigation.
// `title` may be [in full, in the navigation].
export function section(id, titles, about, ...children) {
  const heading = `${id}-title`;
  const [title, link] = [titles].flat();
  return h(
    "section",
    { id, "aria-labelledby": heading, "data-link": link ?? title },
    h("h2", { id: heading }, title),
    about ? h("p", { class: "about" }, about) : null,
    ...children,
  );
}

const quoted = (cell) => {
  const text = cell === null || cell === undefined ? "" : String(cell);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function csvText(header, rows) {
  return [header, ...rows].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
}

// Makes its table when it is pressed.
export function csvButton(name, make) {
  const save = () => {
    const { header, rows } = make();
    const url = URL.createObjectURL(new Blob([csvText(header, rows)], { type: "text/csv" }));
    const link = h("a", { href: url, download: `${name}.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  return button("CSV", save, { class: "csv", "aria-label": `Download ${name} as CSV`, "data-csv": name });
}
