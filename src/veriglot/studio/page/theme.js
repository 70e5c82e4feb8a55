// Light, dark, or as the device says.

const KEY = "veriglot:theme";
const ORDER = /** @type {const} */ (["auto", "light", "dark"]);

/** @returns {"auto" | "light" | "dark"} */
export const theme = () => /** @type {"light" | "dark" | undefined} */ (document.documentElement.dataset.theme) ?? "auto";

/** The next of the three. @returns {"auto" | "light" | "dark"} */
export const nextTheme = () => {
  const next = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // chosen for this page only
  }
  return next;
};
