// What an edit changed, word by word: the longest common run of words stays, the rest was taken out or put in.

/** @typedef {{kind: "same" | "out" | "in", text: string}} Part */

const MOST = 4_000_000; // cells of the table; longer texts are compared as wholes

/** Words and what lies between them. @param {string} text @param {string | null} language @returns {string[]} */
const pieces = (text, language) => {
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language ?? "und", { granularity: "word" });
  } catch {
    segmenter = new Intl.Segmenter("und", { granularity: "word" });
  }
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
};

/** @param {Part[]} parts @param {Part["kind"]} kind @param {string} text */
const put = (parts, kind, text) => {
  const last = parts[parts.length - 1];
  if (last?.kind === kind) last.text += text;
  else parts.push({ kind, text });
};

/** @param {string} before @param {string} after @param {string | null} language @returns {Part[]} */
export const diff = (before, after, language) => {
  const [a, b] = [pieces(before, language), pieces(after, language)];
  if (a.length * b.length > MOST) return [{ kind: "out", text: before }, { kind: "in", text: after }];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = a[i] === b[j]
        ? common[(i + 1) * width + j + 1] + 1
        : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  /** @type {Part[]} */
  const parts = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      put(parts, "same", a[i]);
      [i, j] = [i + 1, j + 1];
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      put(parts, "out", a[i]);
      i += 1;
    } else {
      put(parts, "in", b[j]);
      j += 1;
    }
  }
  return parts;
};
