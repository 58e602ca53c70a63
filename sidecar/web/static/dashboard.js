// What every page needs besides htmx: the theme switch, toasts, quiet polling, and word of a dashboard that has closed.
(() => {
  "use strict";
  const TOAST_MS = 10000;
  const LIVE_HEADER = "Sidecar-Live";
  let isTouched = true;

  // --- theme
  const order = ["auto", "light", "dark"];
  const showTheme = () => {
    for (const name of document.querySelectorAll("[data-theme-name]")) name.textContent = window.sidecarTheme.read();
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-switch]")) return;
    const next = order[(order.indexOf(window.sidecarTheme.read()) + 1) % order.length];
    window.sidecarTheme.choose(next);
    showTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    document.dispatchEvent(new CustomEvent("sidecar:theme"));
  });
  showTheme();

  // --- polling: not while nobody can see it, and told apart from what a person does
  for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "scroll"]) {
    addEventListener(kind, () => { isTouched = true; }, { passive: true, capture: true });
  }
  document.addEventListener("htmx:config:request", (event) => {
    const ctx = event.detail.ctx;
    if (ctx.sourceEvent?.type !== "every") return;
    if (document.hidden) {
      event.preventDefault();
      return;
    }
    ctx.request.headers[LIVE_HEADER] = isTouched ? "attended" : "unattended";
    isTouched = false;
  });

  // --- a dashboard that has closed, or a session that has ended
  const tellLost = (isLost) => {
    const notice = document.getElementById("lost");
    if (notice && notice.hidden === isLost) notice.hidden = !isLost;
  };
  document.addEventListener("htmx:before:response", (event) => {
    const isEnded = event.detail.ctx.response.status === 401;
    tellLost(isEnded);
    if (isEnded) event.preventDefault();
  });
  document.addEventListener("htmx:error", (event) => {
    if (event.detail.ctx && !event.detail.ctx.response) tellLost(true);
  });

  // --- toasts
  const keepTime = (toast) => {
    let timer = 0;
    const start = () => { timer = setTimeout(() => toast.remove(), TOAST_MS); };
    const hold = () => clearTimeout(timer);
    const release = () => { if (!toast.matches(":hover, :focus-within")) { hold(); start(); } };
    for (const kind of ["pointerenter", "focusin"]) toast.addEventListener(kind, hold);
    for (const kind of ["pointerleave", "focusout"]) toast.addEventListener(kind, () => setTimeout(release));
    start();
  };
  const toasts = document.getElementById("toasts");
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.addedNodes) if (node.classList?.contains("toast")) keepTime(node);
    }
  }).observe(toasts, { childList: true });
  toasts.addEventListener("click", (event) => {
    const toast = event.target.closest(".toast");
    if (event.target.closest("[data-dismiss]")) toast.remove();
  });
  toasts.addEventListener("htmx:finally:request", (event) => event.target.closest(".toast")?.remove());
})();
