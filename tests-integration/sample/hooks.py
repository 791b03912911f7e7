"""What runs when the shop opens and closes. The databases close by themselves."""

from Services import shop

on_startup = [shop.open_shop]
on_shutdown = []
