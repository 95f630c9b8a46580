import type { ComponentChildren } from 'preact';
import { CopyButton } from '../../components/copy-button.tsx';
import { formatNumber, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import type { AnswerDetails } from './types.ts';

const text = messages.chat.details;

/** Tokens/s after the first token; null: fewer than two tokens. */
export function tokensPerSecondOf({ usage, firstTokenMs, totalMs }: AnswerDetails): number | null {
  if (usage === null || firstTokenMs === null || usage.completion_tokens < 2 || totalMs <= firstTokenMs) return null;
  return ((usage.completion_tokens - 1) * 1000) / (totalMs - firstTokenMs);
}

/** Scrolls opened details into view: at the end of a thread they open below its edge. */
function showWhole({ currentTarget }: { currentTarget: HTMLDetailsElement }): void {
  if (currentTarget.open) currentTarget.scrollIntoView({ block: 'nearest' });
}

/** A one-line summary of an answer that expands to all details. */
export function Details({ details }: { details: AnswerDetails }) {
  const { usage } = details;
  const tokensPerSecond = tokensPerSecondOf(details);
  const cachedTokens = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  const summary = [
    details.isInTab === true ? text.inTab : null,
    details.route === null ? null : (details.isRemote === true ? text.viaRemote : text.via)(details.route.candidate),
    usage === null ? null : text.tokens(usage.completion_tokens),
    tokensPerSecond === null ? null : text.tokensPerSecond(formatNumber(tokensPerSecond)),
    cachedTokens === 0 ? null : text.cached(cachedTokens),
    details.sources.length === 0 ? null : text.sources(details.sources.length),
    details.hasNothingFitted === true ? text.noneFitted : null,
  ].filter((part) => part !== null);
  return (
    <details class="answer-details" onToggle={showWhole}>
      <summary>{summary.length === 0 ? text.title : visibleText(summary.join(' · '))}</summary>
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
  const { usage, route, requestId } = details;
  const rows: [string, ComponentChildren][] = [[text.model, visibleText(details.model)]];
  if (route !== null) rows.push([text.route, visibleText(`${route.candidate} (${route.reason})`)]);
  if (usage !== null) {
    const share = usage.prompt_tokens === 0 ? '' : ` (${formatShare(cachedTokens / usage.prompt_tokens)})`;
    rows.push([text.prompt, `${text.tokens(usage.prompt_tokens)}, ${text.cached(cachedTokens)}${share}`]);
    const reasoningTokens = usage.completion_tokens_details?.reasoning_tokens ?? 0;
    const reasoningNote = reasoningTokens === 0 ? '' : `, ${text.forReasoning(reasoningTokens)}`;
    rows.push([text.answer, text.tokens(usage.completion_tokens) + reasoningNote]);
  }
  if (details.finishReason !== null) rows.push([text.finishReason, finishReasonOf(details.finishReason)]);
  if (details.firstTokenMs !== null) rows.push([text.firstToken, formatDuration(details.firstTokenMs)]);
  rows.push([text.total, formatDuration(details.totalMs)]);
  if (tokensPerSecond !== null) rows.push([text.speed, text.tokensPerSecond(formatNumber(tokensPerSecond))]);
  if (details.hasNothingFitted === true) rows.push([text.sourceList, text.noneFittedHint]);
  // The server does not know answers of the tab.
  if (requestId === '') return rows;
  rows.push([
    text.request,
    <span class="row">
      <span class="mono">{requestId}</span>
      <CopyButton text={requestId} label={text.copyRequestId} />
    </span>,
  ]);
  return rows;
}

/** In words; an unknown reason as the server wrote it. */
function finishReasonOf(reason: string): string {
  const known: Readonly<Record<string, string>> = text.finishReasons;
  return Object.hasOwn(known, reason) ? known[reason]! : visibleText(reason);
}
