/** A chart of lines and points as SVG: the same bytes for the same data, readable without scripts or styles. Pure. */

export type Point = readonly [x: number, y: number];

export interface Series {
  name: string;
  points: readonly Point[];
  style?: "line" | "dashed" | "points";
}

export interface Axis {
  label: string;
  /** The first and the last tick are the ends of the axis. */
  ticks: readonly number[];
  scale: "linear" | "logarithmic";
}

export interface Chart {
  title: string;
  x: Axis;
  y: Axis;
  series: readonly Series[];
}

const WIDTH = 640;
const HEIGHT = 320;
const EDGE = { left: 64, right: 20, top: 52, bottom: 44 } as const;
/** A palette for readers who see colours differently (Okabe and Ito). */
const COLOURS = ["#0072b2", "#d55e00", "#555", "#009e73", "#cc79a7"] as const;
const TICKS = 4;
const LEGEND_STEP = 8;

export function linear(label: string, most: number): Axis {
  const top = niceTop(most);
  return {
    label,
    scale: "linear",
    ticks: Array.from({ length: TICKS + 1 }, (_, index) => short((index / TICKS) * top)),
  };
}

/** Ticks at 1, 2 and 5 times powers of ten, around everything between these two. */
export function logarithmic(label: string, least: number, most: number): Axis {
  // One power more on both sides: a logarithm may be rounded to the next whole number.
  const from = Math.floor(Math.log10(least)) - 1;
  const powers = Array.from({ length: Math.ceil(Math.log10(most)) + 2 - from }, (_, index) => from + index);
  const every = powers.flatMap((power) => [1, 2, 5].map((step) => short(step * 10 ** power)));
  const first = every.findLastIndex((tick) => tick <= least);
  const last = every.findIndex((tick) => tick >= most && tick > (every[first] ?? 0));
  return { label, scale: "logarithmic", ticks: every.slice(first, last + 1) };
}

export function drawChart({ title, x, y, series }: Chart): string {
  const across = placed(x, EDGE.left, WIDTH - EDGE.right);
  const up = placed(y, HEIGHT - EDGE.bottom, EDGE.top);
  const bottom = HEIGHT - EDGE.bottom;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${EDGE.left}" y="20" font-weight="bold">${escaped(title)}</text>`,
    ...y.ticks.map(
      (tick) =>
        `<path d="M${EDGE.left} ${up(tick)}H${WIDTH - EDGE.right}" stroke="#ddd"/>` +
        `<text x="${EDGE.left - 8}" y="${short(up(tick) + 4)}" text-anchor="end">${tick}</text>`,
    ),
    ...x.ticks.map(
      (tick) =>
        `<path d="M${across(tick)} ${EDGE.top}V${bottom}" stroke="#eee"/>` +
        `<text x="${across(tick)}" y="${bottom + 16}" text-anchor="middle">${tick}</text>`,
    ),
    `<text x="${(WIDTH + EDGE.left) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${escaped(x.label)}</text>`,
    `<text x="14" y="${(bottom + EDGE.top) / 2}" text-anchor="middle" transform="rotate(-90 14 ${(bottom + EDGE.top) / 2})">${escaped(y.label)}</text>`,
    ...series.map((one, index) => drawn(one, colourOf(index), across, up)),
    ...legend(series),
    "</svg>",
  ];
  return `${lines.join("\n")}\n`;
}

type Place = (value: number) => number;

/** Values beyond the axis are drawn at its end. */
function placed({ ticks, scale }: Axis, from: number, to: number): Place {
  const map = scale === "logarithmic" ? Math.log10 : (value: number) => value;
  const [least, most] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  return (value) => {
    const inside = Math.min(most, Math.max(least, value));
    return short(from + ((map(inside) - map(least)) / (map(most) - map(least))) * (to - from));
  };
}

function drawn({ points, style = "line" }: Series, colour: string, across: Place, up: Place): string {
  if (style === "points") {
    return points
      .map(([x, y]) => `<circle cx="${across(x)}" cy="${up(y)}" r="4" fill="${colour}"/>`)
      .join("\n");
  }
  const path = points.map(([x, y]) => `${across(x)} ${up(y)}`).join("L");
  const dashes = style === "dashed" ? ' stroke-dasharray="5 4"' : "";
  return `<path d="M${path}" fill="none" stroke="${colour}" stroke-width="2"${dashes}/>`;
}

function legend(series: readonly Series[]): string[] {
  let x: number = EDGE.left;
  return series.map(({ name, style }, index) => {
    const dashes = style === "dashed" ? ' stroke-dasharray="5 4"' : "";
    const entry =
      `<path d="M${x} 36h16" stroke="${colourOf(index)}" stroke-width="2"${dashes}/>` +
      `<text x="${x + 20}" y="40">${escaped(name)}</text>`;
    x += 36 + name.length * LEGEND_STEP;
    return entry;
  });
}

const colourOf = (index: number) => COLOURS[index % COLOURS.length] as string;

/** The next number above that divides well by the number of ticks. */
function niceTop(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].map((step) => step * unit).find((step) => step >= value) ?? value
  );
}

/** As few digits as a chart needs. */
const short = (value: number) => Number(value.toPrecision(4));

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
