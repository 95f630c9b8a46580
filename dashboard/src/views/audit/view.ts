import type { View } from '../../app/views.ts';
import { messages } from '../../messages/index.ts';

export const view: View = {
  id: 'audit',
  title: messages.audit.title,
  icon: 'audit',
  order: 3,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
