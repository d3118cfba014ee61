// A terminal of the sandbox, drawn by xterm.js if the server has it.

import { at, make } from "./dom.js";

export function startTerminal(base, hasXterm) {
  const tell = (text) => (at("terminal-status").textContent = text);
  if (!hasXterm) {
    at("connect").hidden = true;
    tell("The server has no xterm.js, which draws the terminal; cargo xtask xterm fetches it. Everything else works.");
    return;
  }
  let loaded = null;
  let terminal = null;
  let fit = null;
  let socket = null;

  async function load() {
    document.head.append(make("link", { rel: "stylesheet", href: "/xterm/xterm.css" }));
    for (const src of ["/xterm/xterm.js", "/xterm/addon-fit.js"]) {
      await new Promise((resolve, reject) => {
        document.head.append(make("script", { src, load: resolve, error: () => reject(new Error(`no ${src}`)) }));
      });
    }
    terminal = new Terminal({ fontSize: 13, cursorBlink: true, scrollback: 5000, theme: { background: "#14181a" } });
    fit = new FitAddon.FitAddon();
    terminal.loadAddon(fit);
    terminal.open(at("screen"));
    const bytes = new TextEncoder();
    terminal.onData((keys) => socket?.readyState === WebSocket.OPEN && socket.send(bytes.encode(keys)));
    terminal.onResize(({ rows, cols }) => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ rows, columns: cols }));
    });
    // All keys belong to the shell, so one must lead out.
    terminal.attachCustomKeyEventHandler((event) => {
      if (event.key !== "Escape" || !event.shiftKey) return true;
      at("connect").focus();
      return false;
    });
    new ResizeObserver(() => at("screen").offsetParent && fit.fit()).observe(at("screen"));
  }

  async function connect() {
    try {
      await (loaded ??= load());
    } catch (error) {
      return tell(error.message);
    }
    socket?.close();
    fit.fit();
    terminal.reset();
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const size = new URLSearchParams({ rows: terminal.rows, columns: terminal.cols });
    const opened = new WebSocket(`${scheme}://${location.host}${base}/terminal?${size}`);
    socket = opened;
    opened.binaryType = "arraybuffer";
    tell("Connecting …");
    let said = "The terminal has ended.";
    opened.onopen = () => {
      tell("Connected. Shift+Escape leaves the terminal. ");
      at("terminal-status").append(make("a", { href: "/xterm/LICENSE", target: "_blank" }, "Drawn by xterm.js"));
      terminal.focus();
    };
    opened.onmessage = ({ data }) => {
      if (typeof data === "string") said = JSON.parse(data).error ?? said;
      else terminal.write(new Uint8Array(data));
    };
    opened.onclose = () => socket === opened && tell(said);
  }

  at("connect").addEventListener("click", connect);
  document.addEventListener("view", ({ detail }) => {
    if (detail === "terminal" && !socket) connect();
  });
}
