import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { EmptyState } from '../../components/empty-state.tsx';
import { type MessageProps, MessageView } from './message-view.tsx';
import type { Conversation } from './types.ts';

/** Within this distance from the end, the thread scrolls along with a streaming answer. */
const FOLLOW_PX = 80;

/** The messages of a conversation; follows a streaming answer unless the user has scrolled up. */
export function Thread({ conversation }: { conversation: Conversation }) {
  const scroller = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const { id, messages } = conversation;
  const isIdle = !messages.some(({ state }) => state === 'streaming');

  useLayoutEffect(() => {
    isFollowing.current = true;
  }, [id, messages.length]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element !== null && isFollowing.current) element.scrollTop = element.scrollHeight;
  }, [messages]);

  return (
    <div
      class="thread"
      ref={scroller}
      role="log"
      aria-label="Conversation"
      aria-live="off"
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) =>
        (isFollowing.current = scrollHeight - scrollTop - clientHeight < FOLLOW_PX)
      }
    >
      {messages.length === 0 ? (
        <EmptyState icon="chat" title="What would you like to know?">
          <p>Your messages are sent only to this server.</p>
        </EmptyState>
      ) : (
        <div class="thread-column">
          {messages.map((message, index) => (
            <MemoizedMessage
              key={message.id}
              {...{ conversation, message, isIdle, isLast: index === messages.length - 1 }}
            />
          ))}
        </div>
      )}
    </div>
  );
}

/** Redrawn only when its message changes; otherwise every token would redraw the whole thread. */
function MemoizedMessage({ conversation, message, isIdle, isLast }: MessageProps) {
  const { id, model } = conversation;
  return useMemo(
    () => <MessageView conversation={{ id, model }} message={message} isIdle={isIdle} isLast={isLast} />,
    [id, model, message, isIdle, isLast],
  );
}
