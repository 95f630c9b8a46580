import type { AnswerSource } from '../../api/chat.ts';
import type { ComponentChildren } from 'preact';
import { hrefOf } from '../../app/router.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { formatCount, formatCountOf, formatNumber, formatShare } from '../../format/numbers.ts';
import { placeOf } from '../../format/place.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import type { AnswerDetails } from './types.ts';

/** Tokens/s after the first token; null: fewer than two tokens. */
export function tokensPerSecondOf({ usage, firstTokenMs, totalMs }: AnswerDetails): number | null {
  if (usage === null || firstTokenMs === null || usage.completion_tokens < 2 || totalMs <= firstTokenMs) return null;
  return ((usage.completion_tokens - 1) * 1000) / (totalMs - firstTokenMs);
}

/** A one-line summary of an answer that expands to all details. */
export function Details({ details }: { details: AnswerDetails }) {
  const { usage } = details;
  const tokensPerSecond = tokensPerSecondOf(details);
  const cachedTokens = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  const summary = [
    details.route === null
      ? null
      : `via ${details.route.candidate}${details.isRemote === true ? ', outside this server' : ''}`,
    usage === null ? null : formatCountOf(usage.completion_tokens, 'token'),
    tokensPerSecond === null ? null : `${formatNumber(tokensPerSecond)} tokens/s`,
    cachedTokens === 0 ? null : `${formatCount(cachedTokens)} cached`,
    details.sources.length === 0 ? null : formatCountOf(details.sources.length, 'source'),
    details.hasNothingFitted === true ? 'no source fitted' : null,
  ].filter((part) => part !== null);
  return (
    <details class="answer-details">
      <summary>{summary.length === 0 ? 'Details' : visibleText(summary.join(' · '))}</summary>
      <dl class="pairs">
        {rowsOf(details, tokensPerSecond, cachedTokens).map(([name, value]) => [
          <dt key={name}>{name}</dt>,
          <dd>{value}</dd>,
        ])}
      </dl>
    </details>
  );
}

function rowsOf(
  details: AnswerDetails,
  tokensPerSecond: number | null,
  cachedTokens: number,
): [string, ComponentChildren][] {
  const { usage, route, sources, requestId } = details;
  const rows: [string, ComponentChildren][] = [['Model', visibleText(details.model)]];
  if (route !== null) rows.push(['Route', visibleText(`${route.candidate} (${route.reason})`)]);
  if (usage !== null) {
    const share = usage.prompt_tokens === 0 ? '' : ` (${formatShare(cachedTokens / usage.prompt_tokens)})`;
    const cacheNote = `${formatCount(cachedTokens)} cached${share}`;
    rows.push(['Prompt', `${formatCountOf(usage.prompt_tokens, 'token')}, ${cacheNote}`]);
    const reasoningTokens = usage.completion_tokens_details?.reasoning_tokens ?? 0;
    const reasoningNote = reasoningTokens === 0 ? '' : `, ${formatCount(reasoningTokens)} for reasoning`;
    rows.push(['Answer', formatCountOf(usage.completion_tokens, 'token') + reasoningNote]);
  }
  if (details.finishReason !== null) rows.push(['Finish reason', details.finishReason]);
  if (details.firstTokenMs !== null) rows.push(['Time to first token', formatDuration(details.firstTokenMs)]);
  rows.push(['Total time', formatDuration(details.totalMs)]);
  if (tokensPerSecond !== null) rows.push(['Speed', `${formatNumber(tokensPerSecond)} tokens/s`]);
  if (sources.length > 0) {
    const list = sources.map(({ number, kind, id, part }) => (
      <li key={number} value={number}>
        {part === undefined ? visibleText(kind) : <a href={hrefOf('memory', id)}>{visibleText(titleOf(part))}</a>}{' '}
        <span class="mono">{visibleText(id)}</span>
      </li>
    ));
    rows.push(['Sources', <ol class="sources">{list}</ol>]);
  }
  if (details.hasNothingFitted === true) rows.push(['Sources', 'Records were found, but none fitted into the prompt.']);
  rows.push([
    'Request',
    <span class="row">
      <span class="mono">{requestId}</span>
      <CopyButton text={requestId} label="Copy request id" />
    </span>,
  ]);
  return rows;
}

/** `handbook.md, lines 5–7 › Opening hours`. */
const titleOf = (part: NonNullable<AnswerSource['part']>): string =>
  [`${part.name}, ${placeOf(part)}`, ...part.headings].join(' › ');
