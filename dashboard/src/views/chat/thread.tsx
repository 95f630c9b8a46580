import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { type MessageProps, MessageView } from './message-view.tsx';
import { modelOf, remoteCandidatesOf } from './models.ts';
import { tabModel } from './tab-state.ts';
import type { Conversation } from './types.ts';
import { versionsAt } from './versions.ts';

const text = messages.chat;

/** Within this distance from the end, the thread scrolls along with a streaming answer. */
const FOLLOW_PX = 80;

/** The messages of a conversation; follows a streaming answer unless the user has scrolled up. */
export function Thread({ conversation }: { conversation: Conversation }) {
  const scroller = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const isAway = useSignal(false);
  const { id, messages } = conversation;
  const isIdle = !messages.some(({ state }) => state === 'streaming');

  useLayoutEffect(() => {
    isFollowing.current = true;
  }, [id, messages.length]);
  const goToEnd = (): void => {
    const element = scroller.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  };
  useLayoutEffect(() => {
    if (isFollowing.current) goToEnd();
  }, [messages]);
  // A long text is drawn in several frames, and formulas later than their text.
  useEffect(() => {
    if (column.current === null) return undefined;
    const observer = new ResizeObserver(() => void (isFollowing.current && goToEnd()));
    observer.observe(column.current);
    return () => observer.disconnect();
  }, [messages.length === 0]);

  return (
    <div
      class="thread"
      ref={scroller}
      role="log"
      aria-label={text.conversation}
      aria-live="off"
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isFollowing.current = scrollHeight - scrollTop - clientHeight < FOLLOW_PX;
        isAway.value = scrollHeight - scrollTop - clientHeight > clientHeight / 2;
      }}
    >
      {messages.length === 0 ? (
        <EmptyState icon="chat" title={text.emptyTitle}>
          <p>{destinationOf(conversation)}</p>
        </EmptyState>
      ) : (
        <div class="thread-column" ref={column}>
          {messages.map((message, index) => (
            <MemoizedMessage
              key={message.id}
              {...{ conversation, message, isIdle, isLast: index === messages.length - 1 }}
              versions={versionsAt(conversation, index)}
            />
          ))}
        </div>
      )}
      {isAway.value && (
        <div class="to-end">
          <Button icon="down" label={text.goToEnd} onClick={goToEnd} />
        </div>
      )}
    </div>
  );
}

/** Where messages go. */
function destinationOf({ model }: Conversation): string {
  if (tabModel.value?.id === modelOf(model)) return text.tab.destination;
  const remotes = remoteCandidatesOf(modelOf(model));
  if (remotes.length === 0) return text.sentToServer;
  return text.sentToRemotes(visibleText(remotes.join(', ')));
}

/** Redrawn only when its message changes; otherwise every token would redraw the whole thread. */
function MemoizedMessage({ conversation, message, isIdle, isLast, versions }: MessageProps) {
  const { id, model } = conversation;
  return useMemo(
    () => <MessageView {...{ conversation: { id, model }, message, isIdle, isLast, versions }} />,
    [id, model, message, isIdle, isLast, versions?.number, versions?.count],
  );
}
