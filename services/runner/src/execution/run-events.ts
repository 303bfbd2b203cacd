/** The events of a run while it goes on. jaild sends output as it comes, and joins what comes within 20 ms. */
import type { OutputStream, RunEvent } from "@svc/contracts";
import { outputDecoder } from "./decode-output.ts";

export type TellEvent = (event: RunEvent) => void;

export class RunEvents {
  readonly #tell: TellEvent;
  readonly #runtime: { language: string; version: string };
  /** Each keeps an incomplete character for the next piece. */
  readonly #decoders = { stdout: outputDecoder(), stderr: outputDecoder() };
  #hasStarted = false;
  #isOpen = true;

  constructor(tell: TellEvent, { language, version }: { language: string; version: string }) {
    this.#tell = tell;
    this.#runtime = { language, version };
  }

  /** The notice of the start may come after the first output. */
  started(): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#tell({ event: "started", ...this.#runtime });
  }

  /** Skips output of earlier rounds, which was sent before or not asked for. */
  passOver(stream: OutputStream, bytes: Buffer): void {
    this.#decoders[stream].decode(bytes);
  }

  output(stream: OutputStream, bytes: Buffer): void {
    if (!this.#isOpen) return;
    this.started();
    const text = this.#decoders[stream].decode(bytes);
    if (text !== "") this.#tell({ event: stream, text });
  }

  /** No more events follow: the answer has the rest. */
  end(): void {
    this.#isOpen = false;
  }
}
