"""Field types by family; `treefold_orm.fields` lists them all."""
