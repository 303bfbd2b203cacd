/** The time of programs over their number of calls, as SVG. Points are measured, the line is their least-squares fit. Pure. */
export interface Point {
  calls: number;
  ms: number;
}

const WIDTH = 640;
const HEIGHT = 320;
const EDGE = { left: 64, right: 16, top: 16, bottom: 44 } as const;
const TICKS = 4;

export interface Line {
  perCall: number;
  start: number;
  /** Share of the differences that the line explains; 1 is a straight line. */
  r2: number;
}

export function fit(points: readonly Point[]): Line {
  const n = points.length;
  const meanCalls = points.reduce((sum, { calls }) => sum + calls, 0) / n;
  const meanMs = points.reduce((sum, { ms }) => sum + ms, 0) / n;
  const spread = points.reduce((sum, { calls }) => sum + (calls - meanCalls) ** 2, 0);
  const perCall =
    points.reduce((sum, { calls, ms }) => sum + (calls - meanCalls) * (ms - meanMs), 0) / spread;
  const start = meanMs - perCall * meanCalls;
  const missed = points.reduce((sum, { calls, ms }) => sum + (ms - start - perCall * calls) ** 2, 0);
  const total = points.reduce((sum, { ms }) => sum + (ms - meanMs) ** 2, 0);
  return { perCall, start, r2: total === 0 ? 1 : 1 - missed / total };
}

export function describeFit(points: readonly Point[]): string {
  const { perCall, start, r2 } = fit(points);
  return `${start.toFixed(0)} ms + ${perCall.toFixed(1)} ms per call (R² ${r2.toFixed(4)})`;
}

export function plotCalls(points: readonly Point[]): string {
  const line = fit(points);
  const most = {
    calls: Math.max(...points.map(({ calls }) => calls)),
    ms: Math.max(...points.map(({ ms }) => ms)),
  };
  const top = { calls: niceTop(most.calls), ms: niceTop(most.ms) };
  const x = (calls: number) => round(EDGE.left + (calls / top.calls) * (WIDTH - EDGE.left - EDGE.right));
  const y = (ms: number) => round(HEIGHT - EDGE.bottom - (ms / top.ms) * (HEIGHT - EDGE.top - EDGE.bottom));
  const ticks = Array.from({ length: TICKS + 1 }, (_, index) => index / TICKS);
  const at = (calls: number) => ({ x: x(calls), y: y(Math.max(0, line.start + line.perCall * calls)) });
  const [from, to] = [at(0), at(most.calls)];
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>Time of a program over its number of tool calls</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    ...ticks.map(
      (share) =>
        `<path d="M${EDGE.left} ${y(share * top.ms)}H${WIDTH - EDGE.right}" stroke="#ddd"/>` +
        `<text x="${EDGE.left - 8}" y="${y(share * top.ms) + 4}" text-anchor="end">${share * top.ms}</text>` +
        `<text x="${x(share * top.calls)}" y="${HEIGHT - EDGE.bottom + 18}" text-anchor="middle">${share * top.calls}</text>`,
    ),
    `<path d="M${from.x} ${from.y}L${to.x} ${to.y}" stroke="#888" stroke-dasharray="4 3"/>`,
    ...points.map(({ calls, ms }) => `<circle cx="${x(calls)}" cy="${y(ms)}" r="4" fill="#1f5fa8"/>`),
    `<text x="${EDGE.left + 12}" y="${EDGE.top + 14}">p50 in ms; line: ${describeFit(points)}</text>`,
    `<text x="${(WIDTH + EDGE.left) / 2}" y="${HEIGHT - 8}" text-anchor="middle">sequential tool calls</text>`,
    "</svg>",
  ];
  return `${parts.join("\n")}\n`;
}

/** The next number above that divides well by the number of ticks. */
function niceTop(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].map((step) => step * unit).find((step) => step >= value) ?? value
  );
}

const round = (value: number) => Math.round(value * 10) / 10;
