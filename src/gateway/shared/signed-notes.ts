import type { Clock } from '../../core/clock.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';

/** Longer than any difference between clocks that the fleet accepts. */
const MAX_AGE_MS = 60_000;
/** A fleet has fewer processes. */
const MAX_SENDERS = 10_000;
const MAX_CHARS = 2 ** 20;

/** Why a note is not used. */
export type NoteRefusal = 'shape' | 'signature' | 'age' | 'replay';

export interface Note {
  readonly sender: string;
  readonly value: unknown;
}

interface WrittenNote {
  readonly sender: string;
  readonly seq: number;
  readonly sentMs: number;
  /** JSON; a text, so that its bytes are those that were signed. */
  readonly body: string;
  readonly signature: string;
}

const signedText = (topic: string, { sender, seq, sentMs, body }: Omit<WrittenNote, 'signature'>): string =>
  JSON.stringify([topic, sender, seq, sentMs, body]);

/** Writes notes of one sender, each with a higher number than the one before, also after a restart. */
export function createNoteWriter(keys: FleetKeys, clock: Clock, topic: string, sender: string) {
  let last = 0;
  return (value: unknown): string => {
    const sentMs = clock.wallClock();
    last = Math.max(last + 1, sentMs);
    const note = { sender, seq: last, sentMs, body: JSON.stringify(value) };
    return JSON.stringify({ ...note, signature: keys.sign('note', signedText(topic, note)) });
  };
}

/** Reads notes of all senders about one topic. A note counts once. */
export function createNoteReader(
  keys: FleetKeys,
  clock: Clock,
  topic: string,
  onRefused: (reason: NoteRefusal) => void,
) {
  const lastOf = new Map<string, number>();
  const refuse = (reason: NoteRefusal): null => {
    onRefused(reason);
    return null;
  };
  return (text: string): Note | null => {
    const note = parseNote(text);
    if (note === null) return refuse('shape');
    if (!keys.verify('note', signedText(topic, note), note.signature)) return refuse('signature');
    if (Math.abs(clock.wallClock() - note.sentMs) > MAX_AGE_MS) return refuse('age');
    if (note.seq <= (lastOf.get(note.sender) ?? 0)) return refuse('replay');
    // The numbers of dropped senders follow the clock: their old notes are refused by age.
    if (lastOf.size >= MAX_SENDERS) lastOf.clear();
    lastOf.set(note.sender, note.seq);
    return { sender: note.sender, value: JSON.parse(note.body) as unknown };
  };
}

function parseNote(text: string): WrittenNote | null {
  if (text.length > MAX_CHARS) return null;
  try {
    const note = JSON.parse(text) as WrittenNote;
    const { sender, seq, sentMs, body, signature } = note;
    const isNote =
      [sender, body, signature].every((part) => typeof part === 'string') &&
      Number.isSafeInteger(seq) &&
      Number.isSafeInteger(sentMs);
    return isNote ? note : null;
  } catch {
    return null;
  }
}
