// A long text in blocks that can be folded and laid out one by one. Blocks end at a line break where there is one, else
// after a sentence or at a space, and never inside a code point.

const BLOCK_LEAST = 900;
const BLOCK_MOST = 2400;

function blocksOf(text) {
  const found = [];
  let start = 0;
  while (start < text.length) {
    const end = blockEnd(text, start);
    found.push({ start, end });
    start = end;
  }
  return found;
}

function blockEnd(text, start) {
  if (text.length - start <= BLOCK_MOST) return text.length;
  const stretch = text.slice(start + BLOCK_LEAST, start + BLOCK_MOST);
  const line = stretch.indexOf("\n");
  if (line >= 0) return start + BLOCK_LEAST + line + 1;
  let last = -1;
  for (const match of stretch.matchAll(/[.!?]\s|[。！？।؟۔]\s?/gu)) last = match.index + match[0].length;
  if (last < 0) last = stretch.lastIndexOf(" ") + 1;
  const end = start + BLOCK_LEAST + (last > 0 ? last : stretch.length);
  return isTrailing(text, end) ? end - 1 : end;
}

// The index of the block that holds a UTF-16 unit.
function blockAt(blocks, unit) {
  let low = 0;
  let high = blocks.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (unit < blocks[middle].end) high = middle;
    else low = middle + 1;
  }
  return low;
}
