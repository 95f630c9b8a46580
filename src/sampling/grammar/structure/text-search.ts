/** Finds one text in a byte stream (KMP). A place is how many of its bytes the stream ends with; `bytes.length`: found. */
export interface TextSearch {
  readonly bytes: Uint8Array;
  /** Per place the next shorter one that the stream also ends with. */
  readonly shorter: Int32Array;
  next(place: number, byte: number): number;
}

export function createTextSearch(bytes: Uint8Array): TextSearch {
  const shorter = new Int32Array(bytes.length + 1);
  const next = (place: number, byte: number): number => {
    let at = place === bytes.length ? shorter[place]! : place;
    while (at > 0 && bytes[at] !== byte) at = shorter[at]!;
    return bytes[at] === byte ? at + 1 : 0;
  };
  for (let i = 1; i < bytes.length; i++) shorter[i + 1] = next(shorter[i]!, bytes[i]!);
  return { bytes, shorter, next };
}

/** Finds whichever of several texts comes first. Places are numbered; 0 is the start. */
export interface TriggerSearch {
  readonly numPlaces: number;
  next(place: number, byte: number): number;
  /** The texts that the stream ends with at the place. */
  found(place: number): readonly number[];
}

const NONE: readonly number[] = [];

export function createTriggerSearch(triggers: readonly Uint8Array[]): TriggerSearch {
  const children: Map<number, number>[] = [new Map()];
  const found: (readonly number[])[] = [NONE];
  const shorter: number[] = [0];
  triggers.forEach((trigger, number) => {
    let at = 0;
    for (const byte of trigger) {
      let child = children[at]!.get(byte);
      if (child === undefined) {
        children[at]!.set(byte, (child = children.length));
        children.push(new Map());
        found.push(NONE);
        shorter.push(0);
      }
      at = child;
    }
    found[at] = [...found[at]!, number];
  });
  // Most bytes of free text start no trigger: the first step is a table lookup.
  const first = new Int32Array(256);
  for (const [byte, child] of children[0]!) first[byte] = child;
  const next = (place: number, byte: number): number => {
    for (let at = place; at > 0; at = shorter[at]!) {
      const child = children[at]!.get(byte);
      if (child !== undefined) return child;
    }
    return first[byte]!;
  };
  // Breadth first: shorter places are computed before those that need them.
  const order = [0];
  for (const at of order) {
    for (const [byte, child] of children[at]!) {
      shorter[child] = at === 0 ? 0 : next(shorter[at]!, byte);
      if (found[shorter[child]!]!.length > 0) found[child] = [...found[child]!, ...found[shorter[child]!]!];
      order.push(child);
    }
  }
  return { numPlaces: children.length, next, found: (place) => found[place]! };
}
