/**
 * Shows the output of a program as text nodes, so that it is never parsed as HTML. Pieces are gathered and added once per frame. At
 * most SHOWN_CHARS characters in MAX_PIECES nodes are shown. All output is kept for download (the service limits it).
 */
export const SHOWN_CHARS = 200_000;
/** Maximum nodes; each change between the two streams starts one. More would make the page slow long before the characters do. */
const MAX_PIECES = 2000;
export type Stream = "stdout" | "stderr";

interface Piece {
  stream: Stream;
  text: string;
}

export class Output {
  #place: HTMLElement | undefined;
  #onCut = () => {};
  #waiting: Piece[] = [];
  #whole: string[] = [];
  #shown = 0;
  #last: HTMLElement | undefined;
  #isAsked = false;
  #isCut = false;
  /** Characters so far. */
  written = 0;

  /** Calls `onCut` when some output is no longer shown. */
  showIn(place: HTMLElement, onCut: () => void): void {
    this.#place = place;
    this.#onCut = onCut;
  }

  add(stream: Stream, text: string): void {
    this.#whole.push(text);
    this.written += text.length;
    if (this.#isCut) return;
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

  /** Characters that are shown. */
  get shown(): number {
    return this.#shown;
  }

  clear(): void {
    this.#waiting = [];
    this.#whole = [];
    this.written = 0;
    this.#shown = 0;
    this.#last = undefined;
    this.#isCut = false;
    this.#place?.replaceChildren();
  }

  #show(): void {
    this.#isAsked = false;
    for (const { stream, text } of this.#waiting.splice(0)) {
      const piece = this.#pieceOf(stream);
      const part = piece === undefined ? "" : text.slice(0, SHOWN_CHARS - this.#shown);
      piece?.append(part);
      this.#shown += part.length;
      if (part.length === text.length) continue;
      this.#isCut = true;
      this.#onCut();
      return;
    }
  }

  /** The node that takes the text of a stream; undefined if there are too many nodes. */
  #pieceOf(stream: Stream): HTMLElement | undefined {
    if (this.#place === undefined) return undefined;
    if (this.#last?.className === stream) return this.#last;
    if (this.#place.childElementCount === MAX_PIECES) return undefined;
    this.#last = document.createElement("span");
    this.#last.className = stream;
    this.#place.append(this.#last);
    return this.#last;
  }
}
