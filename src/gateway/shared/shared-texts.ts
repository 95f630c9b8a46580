import type { Clock } from '../../core/clock.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import type { KnownPlace, TextIndex } from '../text-index.ts';
import type { FleetBus } from './fleet-bus.ts';
import { createNoteReader, createNoteWriter, type NoteRefusal } from './signed-notes.ts';

const TOPIC = 'texts';
const MAX_PLACES = 4096;
const HASH = /^[0-9a-f]{8,64}$/;

type Row = readonly [text: string, block: string, numBlocks: number];

export interface SharedTextsOptions {
  readonly bus: FleetBus;
  readonly keys: FleetKeys;
  readonly clock: Clock;
  readonly texts: TextIndex;
  onRefused(reason: NoteRefusal): void;
}

/** Tells other gateways which blocks of tokens a text has, so that its next turn is warm at any of them. */
export function shareTexts({ bus, keys, clock, texts, onRefused }: SharedTextsOptions) {
  const self = crypto.randomUUID();
  const write = createNoteWriter(keys, clock, TOPIC, self);
  const read = createNoteReader(keys, clock, TOPIC, onRefused);
  bus.subscribe(TOPIC, (text) => {
    const note = read(text);
    if (note === null || note.sender === self) return;
    if (!isRows(note.value)) return onRefused('shape');
    texts.add(note.value.map(([hash, block, numBlocks]) => [hash, { block, numBlocks }]));
  });
  return (places: readonly KnownPlace[]): void => {
    if (places.length === 0) return;
    const rows = places.slice(-MAX_PLACES).map(([hash, { block, numBlocks }]): Row => [hash, block, numBlocks]);
    bus.publish(TOPIC, write(rows));
  };
}

const isHash = (value: unknown): boolean => typeof value === 'string' && HASH.test(value);

function isRows(value: unknown): value is readonly Row[] {
  return (
    Array.isArray(value) &&
    value.length <= MAX_PLACES &&
    value.every(
      (row) =>
        Array.isArray(row) &&
        isHash(row[0]) &&
        (row[1] === '' || isHash(row[1])) &&
        Number.isSafeInteger(row[2]) &&
        (row[2] as number) >= 0,
    )
  );
}
