// The parts of the page.

import { figure } from "./chart.js";
import { startChat } from "./chat.js";
import { at } from "./dom.js";
import { begin } from "./service.js";

/** Charts that are kept on the page. */
const CHARTS = 20;

begin((base, session) => {
  const charts = at("charts");
  function replied({ drawn }) {
    if (!drawn) return;
    charts.querySelector(".empty")?.remove();
    charts.prepend(figure(drawn));
    while (charts.children.length > CHARTS) charts.lastElementChild.remove();
    charts.scrollTop = 0;
  }
  startChat(base, session.events, { replied, keepsOutput: true });
});
