import { readFileSync } from 'node:fs';
import { createRandom } from '../../src/core/random.ts';

/** A text of a bank's customer and its intent, one of 77. */
export interface Intent {
  readonly text: string;
  readonly category: string;
}

/** A held-out fifth as queries, and the texts to search. */
export interface IntentSets {
  readonly texts: readonly Intent[];
  readonly queries: readonly Intent[];
}

const SEED = 77;

/** Rows of a file with two columns; texts with commas, quotes or line ends are quoted. */
function parseRows(csv: string): Intent[] {
  const cell = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/gy;
  const rows: Intent[] = [];
  let cells: string[] = [];
  while (cell.lastIndex < csv.length) {
    const match = cell.exec(csv);
    if (match === null) throw new Error(`Banking77 cannot be read after row ${rows.length}`);
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2]!);
    if (match[3] === ',') continue;
    if (cells.length === 2) rows.push({ text: cells[0]!.trim(), category: cells[1]! });
    cells = [];
  }
  return rows.slice(1).filter(({ text }) => text !== '');
}

/** The same split each time; `part` takes only every n-th text. */
export function readIntents(path: string, part: number): IntentSets {
  const random = createRandom(SEED);
  const rows = parseRows(readFileSync(path, 'utf8'));
  for (let i = rows.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [rows[i], rows[j]] = [rows[j]!, rows[i]!];
  }
  const selected = rows.filter((_, index) => index % part === 0);
  const numQueries = Math.floor(selected.length / 5);
  return { queries: selected.slice(0, numQueries), texts: selected.slice(numQueries) };
}

/** How often the nearest text has the query's intent, and how many of the ten nearest. */
export function scoreIntents(queries: readonly Intent[], nearest: readonly (readonly Intent[])[]) {
  let numRight = 0;
  let precision = 0;
  for (const [index, { category }] of queries.entries()) {
    const hits = nearest[index]!.map((hit) => hit.category === category);
    if (hits[0] === true) numRight++;
    precision += hits.filter(Boolean).length / hits.length;
  }
  return { accuracy: numRight / queries.length, precisionAt10: precision / queries.length };
}
