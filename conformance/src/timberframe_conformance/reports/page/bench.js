// The page of benches.
"use strict";
document.getElementById("about").textContent = page.data.map((b) => [b.device, b.environment.processor,
  `${b.method ? b.method.threads : b.environment.cores} core(s)`, b.environment.date].filter(Boolean).join(", ")).join("; ");
document.getElementById("speed-content").append(...speed.draw(page.data));
