import type { Clock } from '../../core/clock.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';
import { createNoteReader, createNoteWriter, type NoteRefusal } from '../shared/signed-notes.ts';

const TOPIC = 'release-report';

/** How far a node is with a proposal. */
export interface NodeReport {
  readonly proposal: string;
  readonly state: 'prepared' | 'refused' | 'active';
  /** Why it refused; empty otherwise. */
  readonly reason: string;
  /** Hash of its file of each model that has a published adapter; models that it does not serve are missing. */
  readonly modelHashes: Readonly<Record<string, string>>;
}

export const createReportWriter = (keys: FleetKeys, clock: Clock, url: string) =>
  createNoteWriter(keys, clock, TOPIC, url) as (report: NodeReport) => string;

/** Reads reports with the address of their node; null: not signed by the fleet. */
export function createReportReader(keys: FleetKeys, clock: Clock, onRefused: (reason: NoteRefusal) => void) {
  const read = createNoteReader(keys, clock, TOPIC, onRefused);
  return (text: string): { readonly url: string; readonly report: NodeReport } | null => {
    const note = read(text);
    if (note === null) return null;
    const { proposal, state, reason, modelHashes } = (note.value ?? {}) as NodeReport;
    const isReport =
      [proposal, reason].every((part) => typeof part === 'string') &&
      ['prepared', 'refused', 'active'].includes(state) &&
      typeof modelHashes === 'object' &&
      modelHashes !== null &&
      Object.values(modelHashes).every((hash) => typeof hash === 'string');
    if (isReport) return { url: note.sender, report: { proposal, state, reason, modelHashes } };
    onRefused('shape');
    return null;
  };
}
