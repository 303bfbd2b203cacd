/** Admission: the seats of each caller, and the executions that all API processes have in hand. */
export class Admission {
  readonly #seats: number;
  readonly #limit: number;
  readonly #held = new Map<number, number>();
  #inHand = 0;

  constructor(seats: number, limit: number) {
    this.#seats = seats;
    this.#limit = limit;
  }

  get inHand(): number {
    return this.#inHand;
  }

  /** The position of the run among those of its caller, or the reason for its refusal. */
  enter(principal: number): number | "seats" | "limit" {
    const held = this.#held.get(principal) ?? 0;
    if (this.#limit > 0 && this.#inHand >= this.#limit) return "limit";
    if (this.#seats > 0 && held >= this.#seats) return "seats";
    this.#held.set(principal, held + 1);
    this.#inHand++;
    return this.#seats > 0 ? held : 0;
  }

  leave(principal: number): void {
    this.#held.set(principal, (this.#held.get(principal) ?? 0) - 1);
    this.#inHand--;
  }
}
