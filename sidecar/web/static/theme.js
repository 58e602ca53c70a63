// Sets the chosen theme before anything is drawn. The port changes from run to run, and with it what `localStorage`
// belongs to; so the choice also goes into a cookie, which holds nothing else and is not told apart by port.
(() => {
  "use strict";
  const key = "sidecar-theme";
  const read = () => {
    const stored = localStorage.getItem(key);
    const cookie = document.cookie.split("; ").find((pair) => pair.startsWith(`${key}=`));
    const theme = stored ?? (cookie ? cookie.slice(key.length + 1) : "auto");
    return ["light", "dark"].includes(theme) ? theme : "auto";
  };
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  window.sidecarTheme = {
    read,
    choose(theme) {
      localStorage.setItem(key, theme);
      document.cookie = `${key}=${theme}; Path=/; Max-Age=31536000; SameSite=Strict`;
      apply(theme);
      document.dispatchEvent(new CustomEvent("sidecar:theme"));
    },
  };
  apply(read());
})();
