// The files of the sandbox: a listing, an editor, upload and download.

import { ask, at, make } from "./dom.js";

/** Files above this size are downloaded, not edited. */
const EDITED_BYTES = 1024 * 1024;

export function startFiles(base) {
  let directory = [];
  /** The file in the editor, with the tag of the content that was read. */
  let edited = null;

  const url = (path) => `${base}/files/${path.map(encodeURIComponent).join("/")}`;
  const tell = (text) => (at("files-status").textContent = text);

  async function refresh() {
    const query = new URLSearchParams({ directory: directory.join("/") });
    try {
      draw(await (await ask("GET", `${base}/files?${query}`)).json());
      tell("");
    } catch (error) {
      if (error.status === 404 && directory.length) return enter([]);
      tell(error.message);
    }
  }

  function enter(path) {
    directory = path;
    return refresh();
  }

  function draw({ entries, more }) {
    const crumbs = ["Files", ...directory].map((name, depth) => make("button", {
      type: "button", class: "link", click: () => enter(directory.slice(0, depth)),
    }, name));
    at("path").replaceChildren(...crumbs.flatMap((crumb, at) => (at ? [" / ", crumb] : [crumb])));
    const rows = entries.map((entry) => {
      const path = [...directory, entry.name];
      const isDirectory = entry.kind === "directory";
      const open = () => (isDirectory ? enter(path) : edit(path, entry.size));
      return make("li", {},
        make("button", { type: "button", class: "link name", disabled: entry.kind === "other", click: open },
          isDirectory ? `${entry.name}/` : entry.name),
        make("span", { class: "size" }, isDirectory ? "" : size(entry.size)));
    });
    if (!rows.length) rows.push(make("li", { class: "empty" }, "Nothing here yet."));
    if (more) rows.push(make("li", { class: "empty" }, `and ${more} more`));
    at("entries").replaceChildren(...rows);
  }

  async function edit(path, bytes) {
    if (bytes > EDITED_BYTES) return download(path);
    try {
      const response = await ask("GET", url(path));
      const content = new Uint8Array(await response.arrayBuffer());
      let text;
      try {
        text = new TextDecoder("utf-8", { fatal: true }).decode(content);
      } catch {
        return download(path);
      }
      edited = { path, tag: response.headers.get("etag") };
      at("edited").textContent = path.join("/");
      at("content").value = text;
      at("download").href = url(path);
      at("editor").hidden = false;
      at("entries").hidden = true;
      at("content").focus();
      tell("");
    } catch (error) {
      tell(error.message);
    }
  }

  function download(path) {
    make("a", { href: url(path), download: "" }).click();
    tell(`${path.at(-1)} is downloaded.`);
  }

  function close() {
    edited = null;
    at("editor").hidden = true;
    at("entries").hidden = false;
    refresh();
    at("entries").querySelector("button")?.focus();
  }

  async function save() {
    const { path, tag } = edited;
    try {
      const response = await ask("PUT", url(path), { body: at("content").value, headers: { "if-match": tag } });
      edited.tag = response.headers.get("etag");
      tell("Saved.");
    } catch (error) {
      tell(error.status === 412 ? "Not saved: the file has changed since it was opened." : error.message);
    }
  }

  async function upload(file) {
    const path = [...directory, file.name];
    try {
      await ask("PUT", url(path), { body: file, headers: { "if-none-match": "*" } });
    } catch (error) {
      if (error.status !== 412 || !confirm(`Replace ${file.name}?`)) throw error;
      await ask("PUT", url(path), { body: file });
    }
  }

  at("refresh").addEventListener("click", refresh);
  at("upload").addEventListener("change", async (event) => {
    try {
      for (const file of event.target.files) await upload(file);
      await refresh();
    } catch (error) {
      tell(`Not uploaded: ${error.message}`);
    }
    event.target.value = "";
  });
  at("close").addEventListener("click", close);
  at("editor").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  at("editor").addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      save();
    }
  });
  refresh();
  return { refresh };
}

function size(bytes) {
  if (bytes === null) return "";
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
