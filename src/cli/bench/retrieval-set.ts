import { z } from 'zod';
import { name, text } from '../../memory/schemas/primitives.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';
import { type BenchData, MAX_TEXT, readBenchData, requireRows } from './read-data.ts';

const line = text(MAX_TEXT, 1);
/** A text to search. */
const document = z.strictObject({ id: name, text: line });
/** A query and the ids of the texts that answer it. */
const query = z.strictObject({ query: line, relevant: z.array(name).min(1).max(1000) });
/** A text and one that belongs to it; `negative` does not. */
const pair = z.strictObject({ anchor: line, positive: line, negative: line.optional() });

/** Texts, and queries with the rows of their relevant texts. */
export interface RetrievalSet {
  readonly texts: readonly string[];
  readonly queries: readonly { readonly text: string; readonly relevant: readonly number[] }[];
}

/** Fewer give no interval that says anything. */
const MIN_QUERIES = 5;

/** Reads documents and queries, or pairs and triplets, in any order. */
export async function readRetrievalSet(
  context: CommandContext,
  topic: string,
): Promise<{ readonly data: BenchData<unknown>; readonly set: RetrievalSet }> {
  const data = await readBenchData(context, topic, z.union([document, query, pair]));
  const rowOf = new Map<string, number>();
  const texts: string[] = [];
  const place = (content: string): number => {
    const row = rowOf.get(content) ?? texts.length;
    if (row === texts.length) texts.push(content);
    rowOf.set(content, row);
    return row;
  };
  const byId = new Map<string, number>();
  for (const one of data.rows) {
    if ('id' in one) {
      if (byId.has(one.id)) throw usageError(`two texts have the id ${JSON.stringify(one.id)}`, '--data');
      byId.set(one.id, place(one.text));
    } else if ('anchor' in one) {
      place(one.positive);
      if (one.negative !== undefined) place(one.negative);
    }
  }
  /** Pairs of one anchor are one query with several relevant texts. */
  const relevant = new Map<string, Set<number>>();
  const add = (asked: string, row: number): void => void relevant.set(asked, (relevant.get(asked) ?? new Set()).add(row)); // prettier-ignore
  for (const one of data.rows) {
    if ('anchor' in one) add(one.anchor, rowOf.get(one.positive)!);
    else if ('query' in one) {
      for (const id of one.relevant) {
        const row = byId.get(id);
        if (row === undefined) throw usageError(`query ${JSON.stringify(one.query.slice(0, 80))} names the text ${JSON.stringify(id)}, which is not in the data`, '--data'); // prettier-ignore
        add(one.query, row);
      }
    }
  }
  requireRows(relevant.size, MIN_QUERIES, 'queries');
  return {
    data,
    set: { texts, queries: [...relevant].map(([asked, rows]) => ({ text: asked, relevant: [...rows] })) },
  };
}
