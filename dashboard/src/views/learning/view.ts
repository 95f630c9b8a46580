import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

export const view: View = {
  id: 'learning',
  title: messages.learning.title,
  icon: 'learning',
  order: 5,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
