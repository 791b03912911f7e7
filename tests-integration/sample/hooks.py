"""What runs when the shop opens and closes."""

from Services import shop

on_startup = [shop.stock_shelves]
on_shutdown = [shop.close]
