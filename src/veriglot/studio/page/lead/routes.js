// Where in the lead's pages one is: the address says it, so that it can be kept, sent and gone back to.

import { BASE } from "../api.js";
import { html, useEffect, useState } from "../view.js";

/** @type {(path: string) => void} */
let navigate = (path) => location.assign(BASE + path);

/** How to go somewhere without loading the page anew. @param {(path: string) => void} how */
export const takeNavigate = (how) => {
  navigate = how;
};

/** Go to a page of the studio. @param {string} path */
export const go = (path) => {
  navigate(path);
  dispatchEvent(new Event("popstate")); // who reads the query of the address looks again
};

/** What the address asks for behind its `?`, and how to change it: an empty value takes a name out.
 * @returns {[URLSearchParams, (changes: Record<string, string>) => void]} */
export const useQuery = () => {
  const [query, setQuery] = useState(() => new URLSearchParams(location.search));
  useEffect(() => {
    const moved = () => setQuery(new URLSearchParams(location.search));
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const change = (/** @type {Record<string, string>} */ changes) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    history.pushState(null, "", `${location.pathname}${next.size ? `?${next}` : ""}`);
    setQuery(next);
  };
  return [query, change];
};

/** The parts of the address after `/lead`. @param {string | undefined} view @returns {string[]} */
export const placeOf = (view) => (view ?? "").split("/").filter(Boolean).map((part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
});

/** The path of a lead's page. @param {...(string | number)} place */
export const address = (...place) => ["/lead", ...place.map((part) => encodeURIComponent(part))].join("/");

/** A link within the studio. @param {any} props */
export const Link = ({ to, children, ...rest }) => {
  const follow = (/** @type {MouseEvent} */ event) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${BASE + to} onClick=${follow} ...${rest}>${children}</a>`;
};
