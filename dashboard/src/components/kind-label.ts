import { visibleText } from '../format/visible-text.ts';
import { messages } from '../messages/index.ts';

const KINDS: Readonly<Record<string, string>> = messages.memory.kinds;

/** The name of a kind of record. */
export const kindLabel = (kind: string): string => KINDS[kind] ?? visibleText(kind);
