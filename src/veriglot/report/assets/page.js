// Theme, the place in the contents, copying, and paper, which shows what is folded or filtered on the screen.

const root = document.documentElement;
const themeButton = document.getElementById("theme");
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  said.textContent = `${root.dataset.theme} theme`;
});

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    getSelection().selectAllChildren(source);
    let copied = true;
    try {
      await navigator.clipboard.writeText(source.innerText);
    } catch {
      copied = document.execCommand("copy"); // a page from a server without TLS, or a browser that asks for a permission
    }
    button.textContent = said.textContent = copied ? "Copied" : "Selected: press Ctrl+C";
  });
}

const links = Array.from(document.querySelectorAll(".contents a"));
const parts = links.map((link) => document.getElementById(link.hash.slice(1)));
let marked = null;

function follow() {
  const line = innerHeight / 3;
  let now = 0;
  parts.forEach((part, place) => { if (part && part.getBoundingClientRect().top < line) now = place; });
  if (now === marked) return;
  marked = now;
  links.forEach((link, place) => {
    if (place === now) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
}

addEventListener("scroll", follow, { passive: true });
follow();

let restored = [];
addEventListener("beforeprint", () => {
  restored = [];
  for (const card of document.querySelectorAll("article.example[hidden]")) {
    card.hidden = false;
    restored.push(card);
  }
});
addEventListener("afterprint", () => restored.forEach((card) => { card.hidden = true; }));
root.dataset.ready = "yes";
