// What all parts of the page use. Text from the server only ever becomes a text node, so
// nothing in it is markup.

/** Returns the element with this id. */
export const at = (id) => document.getElementById(id);

/** Makes an element with attributes, and children that are elements or text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Sends a request. An error of the server becomes an exception with its text. */
export async function ask(method, path, { json, body, headers = {}, signal } = {}) {
  if (json !== undefined) {
    body = JSON.stringify(json);
    headers = { ...headers, "content-type": "application/json" };
  }
  const response = await fetch(path, { method, body, headers, signal });
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const error = new Error(said.error ?? `the server answers ${response.status}`);
  error.status = response.status;
  throw error;
}
