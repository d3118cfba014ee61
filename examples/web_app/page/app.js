// The parts of the page.

import { startChat } from "./chat.js";
import { startFiles } from "./files.js";
import { begin } from "./service.js";
import { startTerminal } from "./terminal.js";

begin((base, session) => {
  const files = startFiles(base);
  startTerminal(base, session.xterm);
  startChat(base, session.events, { changed: files.refresh });
});
