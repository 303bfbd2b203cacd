/**
 * What a program wrote, as text nodes: it is never read as HTML. Pieces are gathered and added once a frame. No more than
 * SHOWN_CHARS are shown; all of it is kept for download (the service bounds it).
 */
export const SHOWN_CHARS = 200_000;
export type Stream = "stdout" | "stderr";

export class Output {
  readonly #place: HTMLElement;
  #waiting: { stream: Stream; text: string }[] = [];
  #whole: string[] = [];
  #written = 0;
  #shown = 0;
  #isAsked = false;

  constructor(place: HTMLElement) {
    this.#place = place;
  }

  add(stream: Stream, text: string): void {
    this.#whole.push(text);
    this.#written += text.length;
    const last = this.#waiting.at(-1);
    if (last?.stream === stream) last.text += text;
    else this.#waiting.push({ stream, text });
    if (this.#isAsked) return;
    this.#isAsked = true;
    requestAnimationFrame(() => this.#show());
  }

  get whole(): string {
    return this.#whole.join("");
  }

  get isCut(): boolean {
    return this.#written > SHOWN_CHARS;
  }

  clear(): void {
    this.#waiting = [];
    this.#whole = [];
    this.#written = 0;
    this.#shown = 0;
    this.#place.replaceChildren();
  }

  #show(): void {
    this.#isAsked = false;
    for (const { stream, text } of this.#waiting.splice(0)) {
      const part = text.slice(0, SHOWN_CHARS - this.#shown);
      if (part === "") return;
      this.#shown += part.length;
      const piece = document.createElement("span");
      piece.className = stream;
      piece.textContent = part;
      this.#place.append(piece);
    }
  }
}
