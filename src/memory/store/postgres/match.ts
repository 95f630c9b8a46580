import { B, K1 } from '../../lexical/bm25.ts';
import { createLexicalIndex } from '../../lexical/lexical-index.ts';
import { type LexicalHit, queryTerms, searchLexical, weighTerms } from '../../lexical/search-lexical.ts';
import { termsOf } from '../../lexical/terms.ts';
import { searchableText } from '../../search/record-text.ts';
import type { MatchedRecord, RecordKind } from '../../types.ts';
import type { CheckedMatch } from '../check-query.ts';
import { passesFilter } from '../filter.ts';
import { numberOf, textOf } from '../row-values.ts';
import type { Tenant } from '../sealer.ts';
import { kindNumber } from '../sqlite/record-row.ts';
import { filterToSql } from './filter-sql.ts';
import { openRow, RECORD_COLUMNS, type OpenedRow } from './record-rows.ts';
import type { Records } from './records.ts';
import type { Names } from './schema.ts';
import { createBinder, type SqlPool } from './sql-client.ts';

/** A tsvector has at most a megabyte, and 255 places of a term. */
const MAX_LEXEMES = 16_384;
const MAX_PLACES = 255;
/** 64 bits: two of a million terms collide in one of ten million tenants. */
const LEXEME_DIGITS = 16;
/** Rows opened at once. */
const SCAN_ROWS = 500;
/** Above this many texts, a term of a tenth of them alone makes no text a candidate. */
const MANY_TEXTS = 5000;
const COMMON_SHARE = 0.1;

/** A term as the database sees it: a keyed hash, different for each tenant. */
const lexemeOf = (term: string, tenant: Tenant): string => tenant.sealer.nameOf('term', term).slice(0, LEXEME_DIGITS);

/** The terms of a text as a tsvector literal, and their number. A term has as many places as it has occurrences. */
export function lexemesOf(text: string, tenant: Tenant): { readonly lexemes: string; readonly numTerms: number } {
  const terms = termsOf(text);
  const frequencies = new Map<string, number>();
  for (const term of terms) frequencies.set(term, (frequencies.get(term) ?? 0) + 1);
  const parts = Array.from(frequencies).slice(0, MAX_LEXEMES).map(([term, frequency]) => {
    const places = Array.from({ length: Math.min(MAX_PLACES, frequency) }, (_, i) => i + 1);
    return `${lexemeOf(term, tenant)}:${places.join(',')}`;
  }); // prettier-ignore
  return { lexemes: parts.join(' '), numTerms: terms.length };
}

interface MatchParts {
  readonly pool: SqlPool;
  readonly names: Names;
  readonly records: Records;
  /** Whether the database has the hashes of terms; otherwise rows are opened and compared here. */
  readonly hasTerms: boolean;
}

export function createMatch({ pool, names, records, hasTerms }: MatchParts) {
  const record = names.table('record');
  /** Tenants and kinds whose rows all have terms. */
  const complete = new Set<string>();

  async function* rowsOf(tenant: Tenant, name: string, kinds: readonly RecordKind[], condition: string) {
    const sql = `SELECT ${RECORD_COLUMNS} FROM ${record} AS r WHERE r.tenant = $1 AND r.kind = ANY($2::smallint[])${condition}
      AND r."row" > $3 ORDER BY r."row" LIMIT ${SCAN_ROWS}`;
    for (let last = 0; ;) {
      const { rows } = await pool.query(sql, [tenant.no, kinds.map(kindNumber), last]);
      if (rows.length === 0) return;
      const opened: readonly OpenedRow[] = rows.map((row) => openRow(row, tenant, name));
      yield opened;
      last = opened.at(-1)!.row;
    }
  }

  async function scan(tenant: Tenant, name: string, query: CheckedMatch): Promise<readonly LexicalHit[]> {
    const index = createLexicalIndex();
    const filter = new Set<number>();
    for await (const opened of rowsOf(tenant, name, query.filter.kinds, '')) {
      for (const { row, record: one } of opened) {
        index.set(row, searchableText(one));
        if (passesFilter(one, query.filter)) filter.add(row);
      }
    }
    return searchLexical([{ index, filter }], query, query.k);
  }

  /** Rows written before there was a search by words. */
  async function complement(tenant: Tenant, name: string, kinds: readonly RecordKind[]): Promise<void> {
    const checked = kinds.filter((kind) => !complete.has(`${tenant.no} ${kind}`));
    if (checked.length === 0) return;
    const sql = `UPDATE ${record} AS r SET terms = u.terms::tsvector, num_terms = u.num_terms
      FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::integer[]) AS u("row", version, terms, num_terms)
      WHERE r."row" = u."row" AND r.version = u.version AND r.terms IS NULL`;
    for await (const opened of rowsOf(tenant, name, checked, ' AND r.terms IS NULL')) {
      const terms = opened.map(({ record: one }) => lexemesOf(searchableText(one), tenant));
      await pool.query(sql, [
        opened.map(({ row }) => row),
        opened.map(({ head }) => head.version),
        terms.map(({ lexemes }) => lexemes),
        terms.map(({ numTerms }) => numTerms),
      ]);
    }
    for (const kind of checked) complete.add(`${tenant.no} ${kind}`);
  }

  async function search(tenant: Tenant, query: CheckedMatch): Promise<readonly LexicalHit[]> {
    const kinds = query.filter.kinds.map(kindNumber);
    const of = 'r.tenant = $1 AND r.kind = ANY($2::smallint[])';
    const lexemes = new Map([...queryTerms(query)].map((term) => [term, lexemeOf(term, tenant)]));
    const counts = await pool.query(
      `SELECT t.lexeme, (SELECT count(*) FROM ${record} AS r WHERE ${of} AND r.terms @@ t.lexeme::tsquery) AS n
       FROM unnest($3::text[]) AS t(lexeme)`,
      [tenant.no, kinds, [...lexemes.values()]],
    );
    const sums = await pool.query(
      `SELECT count(*) AS n, coalesce(sum(r.num_terms), 0)::float8 AS length FROM ${record} AS r WHERE ${of}`,
      [tenant.no, kinds],
    );
    const numTextsOf = new Map(counts.rows.map((row) => [textOf(row['lexeme']), numberOf(row['n'])]));
    const numTexts = numberOf(sums.rows[0]?.['n']);
    const count = (term: string): number => numTextsOf.get(lexemes.get(term)!) ?? 0;
    const { terms, maxScore } = weighTerms(query, numTexts, count);
    if (terms.length === 0) return [];
    const rare = terms.filter(({ term }) => numTexts <= MANY_TEXTS || count(term) <= COMMON_SHARE * numTexts);
    const candidates = (rare.length === 0 ? terms : rare).map(({ term }) => lexemes.get(term)!).join(' | ');
    const binder = createBinder();
    for (const value of [tenant.no, kinds, candidates, terms.map(({ term }) => lexemes.get(term)!), terms.map(({ idf }) => idf), numberOf(sums.rows[0]?.['length']) / numTexts]) binder.bind(value); // prettier-ignore
    const frequency = 'cardinality(u.positions)';
    const condition = filterToSql(query.filter, tenant.sealer, binder);
    const { rows } = await pool.query(
      `SELECT r."row", sum(q.idf * ${frequency} * ${K1 + 1} / (${frequency} + ${K1} * (${1 - B} + ${B} * r.num_terms / $6::float8))) AS score
       FROM ${record} AS r, unnest(r.terms) AS u, unnest($4::text[], $5::float8[]) AS q(lexeme, idf)
       WHERE ${of} AND r.terms @@ $3::tsquery AND q.lexeme = u.lexeme${condition}
       GROUP BY r."row" ORDER BY score DESC, r."row" LIMIT ${binder.bind(query.k)}`,
      binder.values,
    );
    return rows.map((row) => ({ row: numberOf(row['row']), score: numberOf(row['score']) / maxScore }));
  }

  return async (tenant: Tenant, name: string, query: CheckedMatch): Promise<readonly MatchedRecord[]> => {
    if (hasTerms) await complement(tenant, name, query.filter.kinds);
    const hits = hasTerms ? await search(tenant, query) : await scan(tenant, name, query);
    const opened = hits.length === 0 ? [] : await records.byRows(pool, tenant, name, hits.map(({ row }) => row)); // prettier-ignore
    const byRow = new Map(opened.map((one) => [one.row, one.record]));
    // A row may have been deleted meanwhile.
    return hits.flatMap(({ row, score }) => {
      const one = byRow.get(row);
      if (one === undefined) return [];
      return [{ record: query.withVectors ? one : { ...one, vector: null }, score }];
    });
  };
}
