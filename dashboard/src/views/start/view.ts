import { isServerEmpty } from '../../app/session.ts';
import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

/** In the place of the chat while the server has no model. */
export const view: View = {
  id: 'start',
  title: messages.start.title,
  icon: 'chat',
  order: 1,
  isOpenTo: ({ read }) => read && isServerEmpty(),
  load: () => import('./index.tsx'),
};
