// Before anything is painted: the light that somebody chose on this device. A page in the wrong light would flash.
(() => {
  try {
    const chosen = localStorage.getItem("veriglot:theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // no storage: as the device says
  }
})();
