import type { ComponentChildren } from 'preact';
import { ApiError, messageOf } from '../api/errors.ts';
import { visibleText } from '../format/visible-text.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';
import { messages } from '../messages/index.ts';

/** An informational message; for failures use `ErrorNotice`. */
export function Notice({ tone = 'info', children }: { tone?: 'info' | 'warn'; children: ComponentChildren }) {
  return (
    <div class="notice" data-tone={tone} role="status">
      <Icon name={tone === 'warn' ? 'warning' : 'info'} />
      <div>{children}</div>
    </div>
  );
}

/** An error message, with the request id if there is one. */
export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const requestId = error instanceof ApiError ? error.requestId : null;
  return (
    <div class="notice" role="alert">
      <Icon name="warning" />
      <div>
        <p>{visibleText(messageOf(error))}</p>
        {requestId !== null && <p class="small mono">{messages.components.request(requestId)}</p>}
      </div>
      {onRetry !== undefined && (
        <Button isSmall icon="refresh" onClick={onRetry}>
          {messages.components.tryAgain}
        </Button>
      )}
    </div>
  );
}
