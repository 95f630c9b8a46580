import { readFileSync } from 'node:fs';
import { createRandom } from '../../src/core/random.ts';

/** What a bank's customer wrote, and which of 77 intents it has. */
export interface Intent {
  readonly text: string;
  readonly category: string;
}

/** A held-out fifth to ask with, and the rest to find. */
export interface IntentSets {
  readonly known: readonly Intent[];
  readonly asked: readonly Intent[];
}

const SEED = 77;

/** Rows of a file of two columns; texts with commas, quotes or line ends are in quotes. */
function parseRows(csv: string): Intent[] {
  const cell = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/gy;
  const rows: Intent[] = [];
  let cells: string[] = [];
  while (cell.lastIndex < csv.length) {
    const match = cell.exec(csv);
    if (match === null) throw new Error(`Banking77 cannot be read behind row ${rows.length}`);
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2]!);
    if (match[3] === ',') continue;
    if (cells.length === 2) rows.push({ text: cells[0]!.trim(), category: cells[1]! });
    cells = [];
  }
  return rows.slice(1).filter(({ text }) => text !== '');
}

/** The same split each time; `part` takes every so many-th text only. */
export function readIntents(path: string, part: number): IntentSets {
  const random = createRandom(SEED);
  const rows = parseRows(readFileSync(path, 'utf8'));
  for (let i = rows.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [rows[i], rows[j]] = [rows[j]!, rows[i]!];
  }
  const taken = rows.filter((_, index) => index % part === 0);
  const numAsked = Math.floor(taken.length / 5);
  return { asked: taken.slice(0, numAsked), known: taken.slice(numAsked) };
}

/** Of the nearest for each question, the best first: how often the first has its intent, and how many of ten have. */
export function scoreIntents(asked: readonly Intent[], nearest: readonly (readonly Intent[])[]) {
  let numRight = 0;
  let precision = 0;
  for (const [index, { category }] of asked.entries()) {
    const hits = nearest[index]!.map((hit) => hit.category === category);
    if (hits[0] === true) numRight++;
    precision += hits.filter(Boolean).length / hits.length;
  }
  return { accuracy: numRight / asked.length, precisionAt10: precision / asked.length };
}
