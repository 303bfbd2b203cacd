/** Numbers that follow from a seed alone: the same seed gives the same numbers on every machine. Pure. */
const STEP = 0x9e3779b9;

/** Texts and numbers that differ in anything give other numbers. */
export function random(...seed: readonly (string | number)[]): () => number {
  let state = 0;
  for (const letter of seed.join(":")) state = mixed(state ^ letter.charCodeAt(0)) + STEP;
  return () => {
    state = (state + STEP) | 0;
    return (mixed(state) >>> 0) / 2 ** 32;
  };
}

function mixed(value: number): number {
  let bits = value | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
  bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
  return bits ^ (bits >>> 15);
}

export function oneOf<Item>(items: readonly Item[], next: () => number): Item {
  const item = items[Math.floor(next() * items.length)];
  if (item === undefined) throw new Error("nothing to choose from");
  return item;
}

export const between = (least: number, most: number, next: () => number): number =>
  Math.round(least + (most - least) * next());
