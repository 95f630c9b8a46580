import { compareRetrieval, type RelevantRanks, type RetrievalRow } from '../../learning/evaluation/retrieval.ts';
import type { CommandContext } from '../command.ts';
import { noteFacts, type RunFacts, showFigure } from './run-facts.ts';

/** Cut-offs of recall; those beyond the number of texts are trivially 1. */
const CUTOFFS = [1, 5, 10];

/** Compares methods with BM25, prints the table and its document. */
export function reportRetrieval(
  context: CommandContext,
  facts: RunFacts,
  methods: Readonly<Record<string, readonly RelevantRanks[]>>,
  { numTexts, ...details }: { readonly numTexts: number } & Readonly<Record<string, unknown>>,
): RetrievalRow[] {
  const { output } = context;
  const rows = compareRetrieval(methods, CUTOFFS.filter((k) => k === 1 || k < numTexts)); // prettier-ignore
  const [baseline] = rows;
  const numQueries = Object.values(methods)[0]!.length;
  output.document({ ...facts, baseline: baseline!.name, numTexts, numQueries, ...details, methods: rows });
  const measures = Object.keys(baseline!.figures);
  output.table(
    ['METHOD', ...measures.map((measure) => `${measure.toUpperCase()} [95 %]`)],
    rows.map(({ name, figures }) => [name, ...measures.map((measure) => showFigure(figures[measure]!))]),
  );
  output.lines('');
  output.table(
    [`MINUS ${baseline!.name.toUpperCase()}`, ...measures.map((measure) => `${measure.toUpperCase()} [95 %]`)],
    rows.flatMap(({ name, gains }) => gains === null ? [] : [[name, ...measures.map((measure) => showFigure(gains[measure]!))]]), // prettier-ignore
  );
  output.note(`${numQueries} queries, ${numTexts} texts`);
  noteFacts(context, facts);
  return rows;
}
