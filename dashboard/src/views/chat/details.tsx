import type { ComponentChildren } from 'preact';
import { CopyButton } from '../../components/copy-button.tsx';
import { formatCount, formatNumber, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import type { AnswerDetails } from './types.ts';

/** Tokens a second after the first; null: there were not two. */
export function speedOf({ usage, firstTokenMs, totalMs }: AnswerDetails): number | null {
  if (usage === null || firstTokenMs === null || usage.completion_tokens < 2 || totalMs <= firstTokenMs) return null;
  return ((usage.completion_tokens - 1) * 1000) / (totalMs - firstTokenMs);
}

/** One line about an answer; opened, everything that is known of it. */
export function Details({ details }: { details: AnswerDetails }) {
  const { usage } = details;
  const speed = speedOf(details);
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  const summary = [
    details.route === null ? null : `via ${details.route.candidate}`,
    usage === null ? null : `${formatCount(usage.completion_tokens)} tokens`,
    speed === null ? null : `${formatNumber(speed)} tokens/s`,
    cached === 0 ? null : `${formatCount(cached)} cached`,
    details.sources.length === 0 ? null : `${details.sources.length} sources`,
  ].filter((part) => part !== null);
  return (
    <details class="answer-details">
      <summary>{summary.length === 0 ? 'Details' : visibleText(summary.join(' · '))}</summary>
      <dl class="pairs">
        {rowsOf(details, speed, cached).map(([name, value]) => [<dt key={name}>{name}</dt>, <dd>{value}</dd>])}
      </dl>
    </details>
  );
}

function rowsOf(details: AnswerDetails, speed: number | null, cached: number): [string, ComponentChildren][] {
  const { usage, route, sources, requestId } = details;
  const rows: [string, ComponentChildren][] = [['Model', visibleText(details.model)]];
  if (route !== null) rows.push(['Route', visibleText(`${route.candidate} (${route.reason})`)]);
  if (usage !== null) {
    const share = usage.prompt_tokens === 0 ? '' : ` (${formatShare(cached / usage.prompt_tokens)})`;
    rows.push(['Prompt', `${formatCount(usage.prompt_tokens)} tokens, ${formatCount(cached)} from the cache${share}`]);
    const thought = usage.completion_tokens_details?.reasoning_tokens ?? 0;
    const thinking = thought === 0 ? '' : `, ${formatCount(thought)} of them thinking`;
    rows.push(['Answer', `${formatCount(usage.completion_tokens)} tokens${thinking}`]);
  }
  if (details.finishReason !== null) rows.push(['Ended by', details.finishReason]);
  if (details.firstTokenMs !== null) rows.push(['First token', formatDuration(details.firstTokenMs)]);
  rows.push(['Total', formatDuration(details.totalMs)]);
  if (speed !== null) rows.push(['Speed', `${formatNumber(speed)} tokens/s`]);
  if (sources.length > 0) {
    const list = sources.map(({ number, kind, id }) => (
      <li key={number} value={number}>
        {visibleText(kind)} <span class="mono">{visibleText(id)}</span>
      </li>
    ));
    rows.push(['Sources', <ol class="sources">{list}</ol>]);
  }
  rows.push([
    'Request',
    <span class="row">
      <span class="mono">{requestId}</span>
      <CopyButton text={requestId} label="Copy the request id" />
    </span>,
  ]);
  return rows;
}
