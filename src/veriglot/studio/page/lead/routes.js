// Where in the lead's pages one is: the address says it, so that it can be kept, sent and gone back to.

import { BASE } from "../api.js";
import { html } from "../view.js";

/** @type {(path: string) => void} */
let navigate = (path) => location.assign(BASE + path);

/** How to go somewhere without loading the page anew. @param {(path: string) => void} how */
export const takeNavigate = (how) => {
  navigate = how;
};

/** Go to a page of the studio. @param {string} path */
export const go = (path) => navigate(path);

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
    navigate(to);
  };
  return html`<a href=${BASE + to} onClick=${follow} ...${rest}>${children}</a>`;
};
